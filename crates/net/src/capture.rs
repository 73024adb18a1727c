//! Packet traces as byte streams: pcap, pcapng, or text lines `seconds bytes`.
//!
//! Times are exact: decimal text is read as an integer of picoseconds, captures keep their nanoseconds. Lengths are the
//! original ones, not what the capture kept. Files come from anywhere: memory is bounded, damage is named by its place.

use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, PcapBlockOwned, PcapError};
use std::fmt;
use std::io::{BufRead, BufReader, Read};

/// A frame of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Picoseconds since the start of the trace.
    pub time_ps: u64,
    /// Original length in bytes.
    pub bytes: u32,
}

/// Why a trace cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceError {
    /// The stream failed.
    Io(String),
    /// A capture ends inside a record.
    CutOff {
        /// Whole frames before the cut.
        frames: u64,
    },
    /// A record or line is not what it should be.
    Malformed {
        /// Line or frame number, from one.
        place: String,
        /// What was found.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// No frame at all.
    Empty,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(why) => write!(f, "cannot be read: {why}"),
            Self::CutOff { frames } => {
                write!(
                    f,
                    "ends in the middle of a record after {frames} whole frames; expected a complete capture: copy it again, or cut it cleanly with editcap"
                )
            }
            Self::Malformed { place, found, expected } => write!(f, "{place}: found {found}; expected {expected}"),
            Self::Empty => write!(f, "found no frame; expected at least one: a pcap or pcapng capture or lines of \"seconds bytes\""),
        }
    }
}

/// Longest line of a text trace.
const MAX_LINE: usize = 1000;
/// Largest capture block that is accepted.
const MAX_BLOCK: usize = 16 << 20;
/// DLT_EN10MB: frames begin with their Ethernet header.
const ETHERNET: i32 = 1;

/// Text times beyond this (eleven days, in picoseconds) are taken for dates and counted from the first frame.
const LATEST_START: i128 = 1_000_000_000_000_000_000;

/// A whole trace. Times of text count from zero as written; those of captures are dates and count from the first frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frames {
    /// The frames; times never fall.
    pub frames: Vec<Frame>,
    /// Whether lengths include the 14-byte Ethernet header.
    pub with_ethernet_header: bool,
    /// Frames whose time lay before that of the frame before them; they count as simultaneous with it.
    pub out_of_order: u64,
    /// Whether times count from the first frame.
    pub from_first_frame: bool,
}

impl Frames {
    /// Reads a trace; the format is found by its first bytes.
    pub fn read(stream: impl Read + Send) -> Result<Self, TraceError> {
        let mut stream = BufReader::new(stream);
        let start = stream.fill_buf().map_err(|e| TraceError::Io(e.to_string()))?;
        let magic: Option<[u8; 4]> = start.get(..4).and_then(|m| m.try_into().ok());
        let mut times: Vec<(i128, u32)> = Vec::new();
        let (with_ethernet_header, dated) = match magic {
            Some(
                [0x0a, 0x0d, 0x0d, 0x0a]
                | [0xd4, 0xc3, 0xb2, 0xa1]
                | [0xa1, 0xb2, 0xc3, 0xd4]
                | [0x4d, 0x3c, 0xb2, 0xa1]
                | [0xa1, 0xb2, 0x3c, 0x4d],
            ) => (read_capture(stream, &mut times)?, true),
            _ => {
                read_text(stream, &mut times)?;
                (false, times.first().is_some_and(|t| t.0 > LATEST_START))
            }
        };
        let Some(&(first, _)) = times.first() else { return Err(TraceError::Empty) };
        let origin = if dated { first } else { 0 };
        let mut out_of_order = 0;
        let mut latest = 0;
        let mut frames = Vec::with_capacity(times.len());
        for (i, (time, bytes)) in times.into_iter().enumerate() {
            let offset = time - origin;
            if offset < i128::from(latest) {
                out_of_order += 1;
            }
            let offset = u64::try_from(offset.max(i128::from(latest))).ok().filter(|t| *t < u64::MAX / 4);
            latest = offset.ok_or_else(|| TraceError::Malformed {
                place: format!("frame {}", i + 1),
                found: format!("a time {} s after the start", (time - origin) / 1_000_000_000_000),
                expected: "a trace of at most 53 days",
            })?;
            frames.push(Frame { time_ps: latest, bytes });
        }
        Ok(Self { frames, with_ethernet_header, out_of_order, from_first_frame: dated })
    }
}

fn read_text(stream: impl BufRead, times: &mut Vec<(i128, u32)>) -> Result<(), TraceError> {
    let mut stream = stream;
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        let read = (&mut stream).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line).map_err(|e| TraceError::Io(e.to_string()))?;
        if read == 0 {
            break;
        }
        let malformed = |found: String| TraceError::Malformed {
            place: format!("line {number}"),
            found,
            expected: "two numbers, \"seconds bytes\", as in \"0.000012 1500\"",
        };
        if line.len() > MAX_LINE {
            return Err(malformed("a line of more than 1000 characters".into()));
        }
        let text = std::str::from_utf8(&line).map_err(|_| malformed("bytes that are not text".into()))?.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let mut fields = text.split_whitespace();
        let (time, bytes) = (fields.next().and_then(picoseconds), fields.next().and_then(|b| b.parse::<u32>().ok()));
        match (time, bytes, fields.next()) {
            (Some(time), Some(bytes), None) if (1..=65_000).contains(&bytes) => times.push((time, bytes)),
            _ => return Err(malformed(format!("{:?}", text.chars().take(60).collect::<String>()))),
        }
    }
    Ok(())
}

/// Decimal seconds as picoseconds, exactly; digits beyond picoseconds are dropped.
fn picoseconds(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || whole.len() > 12 {
        return None;
    }
    let padded: String = fraction.chars().chain(std::iter::repeat('0')).take(12).collect();
    Some(whole.parse::<i128>().ok()? * 1_000_000_000_000 + padded.parse::<i128>().ok()?)
}

struct Interface {
    /// Picoseconds for each tick, as a fraction.
    numerator: u128,
    denominator: u128,
    offset_s: i64,
}

fn read_capture(stream: impl BufRead + Send, times: &mut Vec<(i128, u32)>) -> Result<bool, TraceError> {
    let cut_off = |times: &[(i128, u32)]| TraceError::CutOff { frames: times.len() as u64 };
    let broken = |times: &[(i128, u32)], found: String| TraceError::Malformed {
        place: format!("frame {}", times.len() + 1),
        found,
        expected: "a valid pcap or pcapng record",
    };
    let mut reader = pcap_parser::create_reader(1 << 16, stream).map_err(|e| match e {
        PcapError::Eof | PcapError::Incomplete(_) | PcapError::UnexpectedEof => cut_off(times),
        other => broken(times, format!("a damaged header ({})", name_of(&other))),
    })?;
    let (mut interfaces, mut nanoseconds, mut ethernet) = (Vec::<Interface>::new(), false, true);
    let mut stalled = 0usize;
    loop {
        match reader.next() {
            Ok((used, block)) => {
                stalled = 0;
                match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        nanoseconds = header.is_nanosecond_precision();
                        ethernet = header.network.0 == ETHERNET;
                    }
                    PcapBlockOwned::Legacy(packet) => {
                        let tick = if nanoseconds { 1_000 } else { 1_000_000 };
                        let time = i128::from(packet.ts_sec) * 1_000_000_000_000 + i128::from(packet.ts_usec) * tick;
                        times.push((time, length(packet.origlen, times)?));
                    }
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
                    PcapBlockOwned::NG(Block::InterfaceDescription(i)) => {
                        ethernet &= i.linktype.0 == ETHERNET;
                        // Bit 7 of if_tsresol chooses a power of two instead of ten.
                        let exponent = u32::from(i.if_tsresol & 0x7f);
                        let base = if i.if_tsresol & 0x80 == 0 { 10u128 } else { 2 };
                        let Some(ticks) = base.checked_pow(exponent).filter(|t| *t < 1 << 64) else {
                            return Err(broken(times, format!("an if_tsresol of {}", i.if_tsresol)));
                        };
                        interfaces.push(Interface { numerator: 1_000_000_000_000, denominator: ticks, offset_s: i.if_tsoffset });
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        let Some(interface) = interfaces.get(packet.if_id as usize) else {
                            return Err(broken(times, format!("a packet of interface {}, which was not described", packet.if_id)));
                        };
                        let ticks = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
                        let time = ticks * interface.numerator / interface.denominator;
                        let offset = i128::from(interface.offset_s) * 1_000_000_000_000;
                        times.push((time as i128 + offset, length(packet.orig_len(), times)?));
                    }
                    PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                        return Err(broken(times, "a simple packet block, which has no time".into()));
                    }
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume(used);
            }
            Err(PcapError::Eof) => return Ok(ethernet),
            Err(PcapError::Incomplete(_)) if stalled < 4 => {
                stalled += 1;
                if reader.reader_exhausted() {
                    return Err(cut_off(times));
                }
                match reader.refill() {
                    Ok(()) => {}
                    Err(PcapError::BufferTooSmall) => grow(reader.as_mut()).map_err(|found| broken(times, found))?,
                    Err(e) => return Err(TraceError::Io(name_of(&e))),
                }
            }
            Err(PcapError::Incomplete(_) | PcapError::UnexpectedEof) => return Err(cut_off(times)),
            Err(PcapError::BufferTooSmall) => grow(reader.as_mut()).map_err(|found| broken(times, found))?,
            Err(e) => return Err(broken(times, format!("damage ({})", name_of(&e)))),
        }
    }
}

fn grow(reader: &mut dyn PcapReaderIterator) -> Result<(), String> {
    let larger = reader.data().len().max(1 << 16) * 2;
    if larger > MAX_BLOCK || !reader.grow(larger) {
        return Err("a block of more than 16 MiB".into());
    }
    reader.refill().map_err(|e| name_of(&e))
}

fn length(original: u32, times: &[(i128, u32)]) -> Result<u32, TraceError> {
    if (1..=65_000).contains(&original) {
        return Ok(original);
    }
    Err(TraceError::Malformed {
        place: format!("frame {}", times.len() + 1),
        found: format!("an original length of {original} B"),
        expected: "1 to 65000 B",
    })
}

/// The kind of a reader's error in plain words.
fn name_of<I: fmt::Debug>(error: &PcapError<I>) -> String {
    match error {
        PcapError::HeaderNotRecognized => "the header is not recognised".into(),
        PcapError::ReadError => "the read failed".into(),
        PcapError::NomError(..) | PcapError::OwnedNomError(..) => "a field is out of range".into(),
        _ => "its lengths do not fit together".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_exact() {
        let frames = Frames::read("# a comment\n1.000000001 1500\n\n1.000000002 64\n1.0 100\n".as_bytes()).unwrap();
        let second = 1_000_000_000_000;
        let expected = [(second + 1000, 1500), (second + 2000, 64), (second + 2000, 100)];
        assert_eq!(frames.frames, expected.map(|(time_ps, bytes)| Frame { time_ps, bytes }));
        let dated = Frames::read("1700000000.5 1500\n1700000000.75 60\n".as_bytes()).unwrap();
        assert_eq!((dated.from_first_frame, dated.frames[1].time_ps), (true, second / 4));
        assert_eq!(frames.out_of_order, 1);
    }

    #[test]
    fn damage_is_named() {
        let message = |text: &[u8]| Frames::read(text).unwrap_err().to_string();
        assert_eq!(
            message(b"0.1 10\n-1 10\n"),
            "line 2: found \"-1 10\"; expected two numbers, \"seconds bytes\", as in \"0.000012 1500\""
        );
        assert!(message(b"0.1 0\n").contains("line 1"));
        assert!(message(b"").contains("no frame"));
        assert!(message(&[0xff; 2000]).contains("line 1"));
    }

    fn pcap(nano: bool, big: bool, frames: &[(u32, u32, u32)]) -> Vec<u8> {
        let word = |v: u32| if big { v.to_be_bytes() } else { v.to_le_bytes() };
        let magic = if nano { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
        let mut out: Vec<u8> = [word(magic), if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] }, word(0), word(0), word(96), word(1)].concat();
        for &(s, sub, bytes) in frames {
            out.extend([word(s), word(sub), word(4), word(bytes), [1, 2, 3, 4]].concat());
        }
        out
    }

    #[test]
    fn captures_of_every_byte_order() {
        for (nano, big) in [(false, false), (false, true), (true, false), (true, true)] {
            let data = pcap(nano, big, &[(5, 10, 1514), (6, 11, 66)]);
            let frames = Frames::read(data.as_slice()).unwrap();
            assert!(frames.with_ethernet_header);
            let tick = if nano { 1_000 } else { 1_000_000 };
            assert_eq!(frames.frames[1], Frame { time_ps: 1_000_000_000_000 + tick, bytes: 66 });
            for cut in 25..data.len() {
                let cut_off = Frames::read(&data[..cut]);
                let whole = if cut >= 24 + 20 { 1 } else { 0 };
                if (cut - 24) % 20 != 0 {
                    assert_eq!(cut_off, Err(TraceError::CutOff { frames: whole }), "cut at {cut}");
                }
            }
        }
    }
}

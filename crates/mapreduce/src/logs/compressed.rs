//! Undoes compression, found by the first bytes: gzip, zstd, lz4 frames, and the block format of lz4-java that Spark writes.

use super::{LogError, Stream};
use std::io::{self, BufRead, BufReader, Read};

const BUFFER: usize = 1 << 16;

pub(super) fn open<'a>(stream: Box<dyn Read + 'a>) -> Result<(Stream<'a>, &'static str), LogError> {
    let mut stream = BufReader::with_capacity(BUFFER, stream);
    let start = stream.fill_buf().map_err(|e| LogError::Io { after_line: 0, why: e.to_string() })?;
    let decoded = |reader: Box<dyn Read + 'a>, name| Ok((BufReader::with_capacity(BUFFER, reader), name));
    match start {
        [0x1f, 0x8b, ..] => decoded(Box::new(flate2::bufread::MultiGzDecoder::new(stream)), "gzip"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => decoded(Box::new(Zstd { source: Some(stream), frame: None }), "zstd"),
        [0x04, 0x22, 0x4d, 0x18, ..] => decoded(Box::new(lz4_flex::frame::FrameDecoder::new(stream)), "lz4"),
        [b'L', b'Z', b'4', b'B', b'l', b'o', b'c', b'k', ..] => decoded(Box::new(Lz4Java { source: stream, block: vec![], at: 0 }), "lz4"),
        _ => decoded(Box::new(stream), "none"),
    }
}

/// Frames of zstd one after the other, as Spark writes them.
struct Zstd<R: BufRead> {
    source: Option<R>,
    frame: Option<Box<ruzstd::decoding::StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>>,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let n = frame.read(out).map_err(|e| io::Error::new(e.kind(), format!("damaged or cut zstd data ({e})")))?;
                if n > 0 || out.is_empty() {
                    return Ok(n);
                }
                self.source = self.frame.take().map(|frame| frame.into_inner());
            }
            let Some(mut source) = self.source.take() else { return Ok(0) };
            if source.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let frame = ruzstd::decoding::StreamingDecoder::new(source)
                .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, format!("damaged or cut zstd data ({e})")))?;
            self.frame = Some(Box::new(frame));
        }
    }
}

/// lz4-java's block stream: for each block the magic `LZ4Block`, a token (method and level), compressed length, original
/// length, checksum (little-endian), data. A block of original length zero ends the stream.
struct Lz4Java<R> {
    source: R,
    block: Vec<u8>,
    at: usize,
}

/// lz4-java's largest block is 32 MiB.
const MAX_BLOCK: usize = 32 << 20;

impl<R: BufRead> Read for Lz4Java<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            if self.source.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let mut header = [0u8; 21];
            self.source.read_exact(&mut header).map_err(|_| damaged("a block header is cut"))?;
            let word = |i: usize| u32::from_le_bytes([header[i], header[i + 1], header[i + 2], header[i + 3]]) as usize;
            let (compressed, original) = (word(9), word(13));
            if &header[..8] != b"LZ4Block" || compressed > MAX_BLOCK || original > MAX_BLOCK {
                return Err(damaged("a block header is not one"));
            }
            let mut data = vec![0u8; compressed];
            self.source.read_exact(&mut data).map_err(|_| damaged("a block is cut"))?;
            self.at = 0;
            self.block = match header[8] & 0xf0 {
                0x10 => data,
                0x20 => lz4_flex::block::decompress(&data, original).map_err(|_| damaged("a block does not decompress"))?,
                _ => return Err(damaged("a block has an unknown method")),
            };
            if self.block.len() != original {
                return Err(damaged("a block has the wrong length"));
            }
        }
        let n = out.len().min(self.block.len() - self.at);
        out[..n].copy_from_slice(&self.block[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("damaged or cut lz4 data ({what})"))
}

//! A packet: a 32-byte value that lives in the ring of the link it is on.

/// What a packet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Data = 0,
    Ack = 1,
    Syn = 2,
    SynAck = 3,
}

/// Set on a retransmitted data segment.
pub(crate) const RETRANSMITTED: u8 = 1 << 2;
/// The bits that tell what a packet is for and whether it is a retransmission.
pub(crate) const KIND_BITS: u8 = 0b111;
/// ECN-capable transport.
pub(crate) const ECT: u8 = 1 << 3;
/// Congestion experienced: set by a queue on an ECT packet.
pub(crate) const CE: u8 = 1 << 4;
/// Congestion echo, from receiver to sender.
pub(crate) const ECE: u8 = 1 << 5;
/// Congestion window reduced, from sender to receiver.
pub(crate) const CWR: u8 = 1 << 6;

/// A packet on a link. `arrival` is when it reaches the far end.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Packet {
    pub arrival: u64,
    pub body: Body,
    pub flow: u32,
    /// Segment number of data; next expected segment of an acknowledgement.
    pub seq: u32,
    /// Bytes on the wire.
    pub size: u16,
    /// A [`Kind`] in the low two bits and flags above.
    pub bits: u8,
    /// Index of the next port on the flow's path.
    pub hop: u8,
}

/// Twelve bytes whose meaning depends on the kind: when a data segment was handed to its network card (picoseconds), or
/// up to three SACK blocks as (offset from the acknowledged segment, length) in segments.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Body([u32; 3]);

/// The most SACK blocks in one acknowledgement (RFC 2018 with the timestamp option).
pub(crate) const SACK_BLOCKS: usize = 3;

impl Body {
    pub fn born(now: u64) -> Self {
        Self([now as u32, (now >> 32) as u32, 0])
    }

    pub fn birth(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }

    /// The block must fit 16-bit offsets, which the window limit of 32,768 segments ensures.
    pub fn set_block(&mut self, i: usize, offset: u32, length: u32) {
        debug_assert!(offset <= 0xffff && length <= 0xffff);
        self.0[i] = offset << 16 | length;
    }

    /// The `i`-th block as (offset, length); length zero means none.
    pub fn block(self, i: usize) -> (u32, u32) {
        (self.0[i] >> 16, self.0[i] & 0xffff)
    }
}

impl Packet {
    #[inline(always)]
    pub fn kind(self) -> Kind {
        match self.bits & 3 {
            0 => Kind::Data,
            1 => Kind::Ack,
            2 => Kind::Syn,
            _ => Kind::SynAck,
        }
    }

    #[inline(always)]
    pub fn has(self, flag: u8) -> bool {
        self.bits & flag != 0
    }

    /// Whether it travels from the flow's source to its destination.
    #[inline(always)]
    pub fn is_forward(self) -> bool {
        self.bits & 1 == 0
    }
}

const _: () = assert!(size_of::<Packet>() == 32);

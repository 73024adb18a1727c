//! Lines of bounded length from a stream.

use super::LogError;
use std::io::BufRead;

/// Longest line that is kept; Spark writes query plans of many megabytes on one line.
const MAX_LINE: usize = 64 << 20;

/// A line, or that it was too long to keep.
pub(super) enum Line<'a> {
    Text(&'a [u8]),
    TooLong,
}

pub(super) struct Lines<R> {
    stream: R,
    buffer: Vec<u8>,
    pub number: u64,
    /// The last line that was read did not end with a line break: the file may be cut there.
    pub unterminated: bool,
}

impl<R: BufRead> Lines<R> {
    pub fn new(stream: R) -> Self {
        Self { stream, buffer: Vec::new(), number: 0, unterminated: false }
    }

    pub fn next(&mut self) -> Result<Option<Line<'_>>, LogError> {
        self.buffer.clear();
        let mut too_long = false;
        loop {
            let chunk = self.stream.fill_buf().map_err(|e| LogError::Io { after_line: self.number, why: e.to_string() })?;
            if chunk.is_empty() {
                if self.buffer.is_empty() && !too_long {
                    return Ok(None);
                }
                self.unterminated = true;
                break;
            }
            let end = chunk.iter().position(|&b| b == b'\n');
            let used = end.map_or(chunk.len(), |e| e + 1);
            if self.buffer.len() + used > MAX_LINE {
                too_long = true;
                self.buffer.clear();
            }
            if !too_long {
                self.buffer.extend_from_slice(&chunk[..used]);
            }
            self.stream.consume(used);
            if end.is_some() {
                break;
            }
        }
        self.number += 1;
        Ok(Some(if too_long { Line::TooLong } else { Line::Text(self.buffer.trim_ascii()) }))
    }

    /// The rest of the stream, for formats that are lines only at the start.
    pub fn into_stream(self) -> R {
        self.stream
    }
}

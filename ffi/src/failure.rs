//! Why a call fails, on its way to the caller's `edgelog_error`.

use std::any::Any;
use std::collections::TryReserveError;
use std::ffi::c_char;
use std::fmt::{self, Write};

use crate::error::{
    edgelog_error, EDGELOG_ERROR_HAS_OFFSET, EDGELOG_ERROR_HAS_PARTITION,
    EDGELOG_ERROR_HAS_POSITION, EDGELOG_ERROR_HAS_PROCESS, EDGELOG_ERROR_HAS_SEGMENT,
    EDGELOG_ERROR_TEXT_BYTES,
};
use crate::status::{
    self, edgelog_status, EDGELOG_INTERNAL, EDGELOG_INVALID, EDGELOG_NO_MEMORY, EDGELOG_OK,
};
use crate::tagged::{self, Tagged};

/// The engine's error, or one found on the way to it.
pub(crate) enum Failure {
    Engine(edgelog_core::Error),
    Here(edgelog_status, &'static str),
    Panic(Box<dyn Any + Send>),
}

/// What the body of a call comes to.
pub(crate) type Answer = Result<edgelog_status, Failure>;

impl From<edgelog_core::Error> for Failure {
    fn from(error: edgelog_core::Error) -> Failure {
        Failure::Engine(error)
    }
}

impl From<TryReserveError> for Failure {
    fn from(_: TryReserveError) -> Failure {
        Failure::Here(
            EDGELOG_NO_MEMORY,
            "not enough memory for the arguments of this call",
        )
    }
}

/// A wrong argument.
#[cold]
pub(crate) fn invalid(text: &'static str) -> Failure {
    Failure::Here(EDGELOG_INVALID, text)
}

impl Failure {
    pub(crate) fn status(&self) -> edgelog_status {
        match self {
            Failure::Engine(error) => status::of_kind(error.kind()),
            Failure::Here(status, _) => *status,
            Failure::Panic(_) => EDGELOG_INTERNAL,
        }
    }

    /// Fills the caller's error, if there is one, and returns the status to answer.
    ///
    /// # Safety
    /// `error` is NULL or passed [`tagged::check`].
    #[cold]
    pub(crate) unsafe fn report(self, error: *mut edgelog_error) -> edgelog_status {
        let status = self.status();
        debug_assert!(status < EDGELOG_OK);
        if !error.is_null() {
            // SAFETY: as this function asks for.
            unsafe { tagged::give(error, self.describe(status)) };
        }
        status
    }

    fn describe(&self, status: edgelog_status) -> edgelog_error {
        let mut filled = edgelog_error {
            status,
            ..edgelog_error::DEFAULT
        };
        let mut text = Text {
            bytes: &mut filled.text,
            used: 0,
        };
        // Text never refuses; the engine's own Display has no reason to.
        let _ = match self {
            Failure::Engine(error) => write!(text, "{error}"),
            Failure::Here(_, sentence) => text.write_str(sentence),
            Failure::Panic(payload) => write!(text, "a fault of edgelog: {}", said(payload)),
        };
        if let Failure::Engine(error) = self {
            locate(&mut filled, error);
        }
        filled
    }
}

fn locate(filled: &mut edgelog_error, error: &edgelog_core::Error) {
    filled.os_error = error.os_error().unwrap_or(0);
    if let Some(partition) = error.partition() {
        filled.partition = partition;
        filled.flags |= EDGELOG_ERROR_HAS_PARTITION;
    }
    if let Some(segment) = error.segment() {
        filled.segment = segment;
        filled.flags |= EDGELOG_ERROR_HAS_SEGMENT;
    }
    if let Some(position) = error.position() {
        filled.position = position;
        filled.flags |= EDGELOG_ERROR_HAS_POSITION;
    }
    if let Some((first, end)) = error.offsets() {
        filled.offset = first;
        filled.offset_end = end;
        filled.flags |= EDGELOG_ERROR_HAS_OFFSET;
    }
    if let Some(process) = error.process_id() {
        filled.process_id = process;
        filled.flags |= EDGELOG_ERROR_HAS_PROCESS;
    }
}

fn said(payload: &Box<dyn Any + Send>) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "no message"
    }
}

/// Writes UTF-8 into a zeroed array, cut between two characters, its last byte left zero.
struct Text<'a> {
    bytes: &'a mut [c_char; EDGELOG_ERROR_TEXT_BYTES],
    used: usize,
}

impl Write for Text<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        for character in piece.chars() {
            let end = self.used.saturating_add(character.len_utf8());
            if end >= EDGELOG_ERROR_TEXT_BYTES {
                // Full: nothing that follows may slip in behind what was left out.
                self.used = EDGELOG_ERROR_TEXT_BYTES;
                break;
            }
            let mut encoded = [0; 4];
            character.encode_utf8(&mut encoded);
            if let Some(room) = self.bytes.get_mut(self.used..end) {
                for (to, from) in room.iter_mut().zip(encoded) {
                    *to = from as c_char;
                }
            }
            self.used = end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(failure: Failure) -> String {
        let status = failure.status();
        let bytes = failure.describe(status).text.map(|c| c as u8);
        String::from_utf8(bytes.into_iter().take_while(|&b| b != 0).collect()).unwrap_or_default()
    }

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        let umlauts: &'static str = Box::leak("\u{e4}".repeat(200).into_boxed_str());
        assert_eq!(text_of(invalid(umlauts)), "\u{e4}".repeat(127));
        let plain: &'static str = Box::leak("x".repeat(256).into_boxed_str());
        assert_eq!(text_of(invalid(plain)), "x".repeat(255));
    }

    #[test]
    fn a_panic_keeps_its_message() {
        let borrowed = Failure::Panic(Box::new("one"));
        assert_eq!(borrowed.status(), EDGELOG_INTERNAL);
        assert_eq!(text_of(borrowed), "a fault of edgelog: one");
        let owned = Failure::Panic(Box::new(String::from("two")));
        assert_eq!(text_of(owned), "a fault of edgelog: two");
        assert_eq!(
            text_of(Failure::Panic(Box::new(3))),
            "a fault of edgelog: no message"
        );
    }
}

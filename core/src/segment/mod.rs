//! One file of a partition: its header, its frames, its footer, and what they add up to.
//!
//! - [`header`]: the first bytes, written once.
//! - [`summary`]: counts and bounds of the records, folded one by one.
//! - [`index`]: every so many bytes, where which offset starts.
//! - [`footer`]: summary and index as the last frame of a sealed segment.
//! - [`window`]: a buffer over a file that is read in order.
//! - [`scan`]: the frames of a file and the damage between them.
//! - [`fold`]: a replica of a segment, folded from its bytes.
//! - [`writer`]: the active segment, with what is not yet handed to the system.

pub(crate) mod fold;
pub(crate) mod footer;
pub(crate) mod header;
pub(crate) mod index;
pub(crate) mod scan;
pub(crate) mod summary;
pub(crate) mod window;
pub(crate) mod writer;

pub(crate) use fold::Fold;
pub(crate) use header::Header;
pub(crate) use index::Index;
pub(crate) use summary::Summary;
pub(crate) use window::Window;
pub(crate) use writer::Writer;

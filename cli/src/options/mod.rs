//! Command-line options that both programs share.

pub mod landing;
pub mod manual;
pub mod moment;
pub mod size;

mod selection;

pub use selection::Selection;

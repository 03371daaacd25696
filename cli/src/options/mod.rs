//! What is asked for in the same words.

pub mod landing;
pub mod manual;
pub mod moment;
pub mod size;

mod selection;

pub use selection::Selection;

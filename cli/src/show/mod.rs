//! Output, as text and as JSON.

pub mod change;
pub mod date;
pub mod entry;
pub mod guest_colours;
pub mod json;
pub mod name;
pub mod patch;
pub mod voice;

mod page;
mod progress;
mod summary;
mod table;

pub use page::Page;
pub use progress::Progress;
pub use summary::Summary;
pub use table::Table;

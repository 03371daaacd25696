//! What is printed, for people and for machines.

pub mod change;
pub mod date;
pub mod entry;
pub mod name;
pub mod patch;
pub mod voice;

mod harmless;
mod page;
mod progress;
mod summary;
mod table;

pub use harmless::Harmless;
pub use page::Page;
pub use progress::Progress;
pub use summary::Summary;
pub use table::Table;

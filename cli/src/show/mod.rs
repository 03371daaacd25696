//! Output, as text and as JSON.

pub mod change;
pub mod entry;
pub mod guest_colours;
pub mod json;
pub mod message;
pub mod name;
pub mod patch;

mod progress;
mod safe_stdout;
mod spinner;
mod summary;
mod table;

pub use progress::Progress;
pub use safe_stdout::SafeStdout;
pub use spinner::{Spinner, SpinnerMessages};
pub use summary::Summary;
pub use table::Table;

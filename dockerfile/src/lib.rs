//! Builds environments for microVMs from Dockerfiles.
//!
//! Each RUN, COPY and ADD is done in a microVM of its own, on a copy-on-write layer above that
//! of the step before. A layer is kept under the digest of all that it depends on, so a step
//! whose inputs have not changed is not done again. What a Dockerfile says that is not known here
//! is an error with its line, and nothing is started.
//!
//! The parts of the language: FROM with several stages, RUN, COPY, ADD of local files and
//! archives, ENV, ARG, WORKDIR, USER, LABEL, EXPOSE, ENTRYPOINT, CMD, here-documents and
//! `.dockerignore`. See [`Build`] for how to use it.

mod build;
mod copy;
mod error;
mod event;
mod instruction;
mod layers;
mod machine;
mod plan;
mod scratch;
mod settings;
mod stage;
mod stage_build;
mod syntax;

pub use build::Build;
pub use error::BuildError;
pub use event::BuildEvent;
pub use plan::{BaseImage, Plan};

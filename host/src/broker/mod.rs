//! Secrets that the guest uses and never has.
//!
//! A program in the guest sends a placeholder; this library puts the value in on the way to
//! one host, at one place of a request of HTTP, and masks it in the answers.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use vmcell::{Command, Vm, broker::BrokeredSecret, network::NetworkPolicy, secret::Secret};
//!
//! let key = Secret::from_env("api-key", "API_KEY")?;
//! let key = BrokeredSecret::header(&key, "api.example.org", "Authorization")?;
//! let vm = Vm::builder()
//!     .image("debian.ext4")
//!     .network(NetworkPolicy::rules().allow("api.example.org:443")?)
//!     .broker(&key)
//!     .start()
//!     .await?;
//! let line = "curl -H \"Authorization: Bearer $API_KEY\" https://api.example.org/";
//! vm.exec_command(Command::shell(line).env("API_KEY", key.placeholder())).await?;
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//!  program ── TLS ──> agent ──> broker ── TLS ──> api.example.org
//!      placeholder           │ checks the host,      value
//!                            │ puts the value in
//!          mask       <──────┘ masks it    <──────   value
//! ```
//!
//! # What is guaranteed
//! - The value is sent to the host and port of its grant only, after the certificate of that
//!   host was checked as any client checks it, and only at the place that the grant names. A
//!   request that names another host is answered with 421 and not sent. Everywhere else the
//!   placeholder is sent as it is.
//! - The policy of the network decides first. A grant opens nothing.
//! - Connections to hosts without a grant are not touched.
//! - The value is masked in the heads and bodies of answers, also in its usual encodings.
//!   Answers that are compressed are refused with 502, so the host is asked for plain ones.
//!   A `Range` is not passed on, because a value in parts would not be found.
//!
//! # What is not
//! A host that wants to give its guest the value can write it in a way that nobody finds. A
//! guest may use the value for all that the host lets it do: choose one with few rights.
//! Requests that switch the protocol, such as those of WebSocket, are refused with 501.
//!
//! # Certificates
//! TLS ends in this library, with a certificate of an authority that is made for the VM. It
//! may sign for the hosts of the grants only, and its key is dropped before the VM starts.
//! Programs of the guest trust it by files in memory that are mounted over those of the
//! image, and by the environment variables that Python, Node, Java, Go, curl and git read.
//! A VM without grants has nothing of this.

mod authority;
mod brokered_host;
mod brokered_secret;
mod connection;
mod error;
mod exchange;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod java_trust_store;
mod masked_body;
mod metered_stream;
mod pem;
mod placement;
mod settings;
mod tasks;
mod trust_store;
mod upstream_tls;

pub use brokered_secret::BrokeredSecret;
pub use error::BrokerError;

pub(crate) use brokered_host::{Broker, BrokeredHost};
pub(crate) use settings::BrokerSettings;

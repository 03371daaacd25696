//! What the programs of a guest reach, by name.
//!
//! A guest has no network device. Its programs connect as usual; the agent takes each
//! connection and names its host and port, and this library decides, resolves the name and
//! connects in its place. By default nothing leaves the guest.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use vmcell::{Vm, network::NetworkPolicy};
//!
//! let policy = NetworkPolicy::rules()
//!     .allow("pypi.org:443")?
//!     .allow("files.pythonhosted.org:443")?;
//! let vm = Vm::builder().image("debian.ext4").network(policy).start().await?;
//! let installed = vm.exec(["pip", "install", "requests"]).await?;
//! println!("it tried to reach: {:?}", installed.network_denials);
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//!  program ── connect ──> agent ── name, port ──> policy ──> resolver ──> check ──> dialer
//!          <─────────────────────────── data ───────────────────────────────────>
//! ```
//!
//! # What is guaranteed
//! - Nothing leaves the guest but TCP connections that the policy allows, whatever runs in
//!   it, also as root: the host decides about each. Names that are not allowed are not
//!   even resolved, so no data leaves in them.
//! - A name is resolved once for each connection, and what is connected to is the address
//!   that was checked. Addresses of this machine and of its networks are refused unless a
//!   rule names them.
//!
//! # What is not
//! The host sees names and ports, not what is said. A program that may reach a host with
//! many sites, such as that of a content network, may reach the others through it, and
//! send anything to the one that it may reach.

mod address;
mod capture;
mod connecting;
mod decision;
mod dialer;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod handle;
#[cfg(feature = "hickory")]
mod hickory;
mod hooks;
mod host_name;
mod limits;
mod log;
mod observer;
mod own;
mod policy;
mod policy_error;
mod policy_record;
mod port_ranges;
mod prefix;
mod proxy;
mod proxy_request;
mod resolver;
mod rule;
mod state;
mod status;

pub use decision::{ConnectionEnd, Decision, DenialReason, Verdict, Wanted};
pub use dialer::{Destination, Dialer, DirectDialer, Upstream};
pub use handle::Network;
#[cfg(feature = "hickory")]
pub use hickory::DnsResolver;
pub use host_name::HostName;
pub use limits::NetworkLimits;
pub use log::{NetworkEvent, NetworkLog};
pub use observer::NetworkObserver;
pub use policy::NetworkPolicy;
pub use policy_error::PolicyError;
pub use port_ranges::PortRanges;
pub use prefix::Prefix;
pub use proxy::{PROXY, PROXY_VARIABLES};
pub use resolver::{BoxFuture, Resolver, SystemResolver};
pub use rule::Rule;
pub use status::{NetworkStatus, OpenConnection, TrafficTotals};

pub(crate) use hooks::NetworkHooks;
pub(crate) use own::OwnNetwork;
use state::NetworkState;

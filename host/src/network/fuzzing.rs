//! What the fuzz targets `http` and `state_files` reach.

use bytes::BytesMut;

use super::{
    NetworkPolicy,
    proxy_request::{self, ProxyRequestKind},
};

/// What a program asks of the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyRequest {
    /// The host and the port that it wants.
    pub wanted: String,
    /// The head that the server gets; `None` for a tunnel.
    pub forwarded: Option<Vec<u8>>,
    /// What follows the head of the request.
    pub rest: Vec<u8>,
}

/// Reads a request to the proxy; `None` if its head is not whole yet.
///
/// # Errors
/// What the program is told.
pub fn parse_proxy_request(received: &[u8]) -> Result<Option<ProxyRequest>, String> {
    let parsed = proxy_request::ProxyRequest::parse(&mut BytesMut::from(received));
    let request = parsed.map_err(|error| error.to_string())?;
    Ok(request.map(|request| ProxyRequest {
        wanted: request.wanted.wanted().to_string(),
        forwarded: match request.kind {
            ProxyRequestKind::Tunnel => None,
            ProxyRequestKind::Forward(head) => Some(head),
        },
        rest: request.rest.to_vec(),
    }))
}

/// Reads a policy as it is in the record of a workspace, writes it and reads it again.
///
/// # Errors
/// What users see.
pub fn read_network_policy(json: &[u8]) -> Result<(), String> {
    let policy: NetworkPolicy = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let written = serde_json::to_vec(&policy).map_err(|error| error.to_string())?;
    let again: NetworkPolicy = serde_json::from_slice(&written)
        .map_err(|error| format!("it cannot be read again: {error}"))?;
    assert_eq!(policy, again);
    Ok(())
}

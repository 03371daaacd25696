//! What the fuzz target `state_files` reaches.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use super::{VmSummary, change_record, end_record, snapshot_record};
use crate::{
    framed,
    fuzzing::run_at_once,
    metrics::{AllMetrics, Metrics, MetricsRequest, Sample},
    network::{NetworkEvent, NetworkStatus},
    service::{ServicePort, ServicesRequest},
};

/// Reads these bytes as each of the messages between the owner of a VM and its clients.
/// What is a message is the same after it was sent again. Returns the errors of owners.
pub fn read_attach_messages(mut bytes: &[u8]) -> Vec<String> {
    read_framed::<MetricsRequest>(bytes);
    read_framed::<Result<Metrics, String>>(bytes);
    read_framed::<Result<Sample, String>>(bytes);
    read_framed::<Result<AllMetrics, String>>(bytes);
    read_framed::<NetworkStatus>(bytes);
    read_framed::<Vec<NetworkEvent>>(bytes);
    read_framed::<ServicesRequest>(bytes);
    read_framed::<Vec<ServicePort>>(bytes);
    read_framed::<Vec<u8>>(bytes);
    if let Ok(summary) = run_at_once(VmSummary::receive(&mut &*bytes)) {
        let _ = summary.acceleration();
        let body = postcard::to_allocvec(&summary).expect("it is encoded");
        let length = u16::try_from(body.len()).expect("it was as long before");
        let again = [&length.to_le_bytes()[..], &body].concat();
        let again = run_at_once(VmSummary::receive(&mut &*again));
        assert_eq!(again.expect("it is the same"), summary);
    }
    let _ = run_at_once(end_record::receive(&mut &*bytes));
    if let Ok((path, _)) = run_at_once(snapshot_record::receive_request(&mut &*bytes)) {
        assert!(path.as_os_str().len() <= bytes.len());
    }
    let mut errors = Vec::new();
    if let Ok(Err(error)) = run_at_once(snapshot_record::receive_result(&mut &*bytes)) {
        errors.push(error);
    }
    while let Ok(result) = run_at_once(change_record::receive(&mut bytes)) {
        errors.extend(result.err());
    }
    errors
}

/// Reads a message, and checks that it is the same after it was sent again.
fn read_framed<T: Serialize + for<'a> Deserialize<'a> + Debug>(bytes: &[u8]) {
    let Ok(message) = run_at_once(framed::receive::<T>(&mut &*bytes)) else {
        return;
    };
    let mut sent = Vec::new();
    run_at_once(framed::send(&mut sent, &message)).expect("it fits into memory");
    let again = run_at_once(framed::receive::<T>(&mut &*sent)).expect("it is the same");
    assert_eq!(format!("{again:?}"), format!("{message:?}"));
}

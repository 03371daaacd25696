//! The quotas of a VM, as its owner sends them to clients.

use serde::{Deserialize, Serialize};

use crate::quotas::{QuotaUsage, Quotas};

/// A [`QuotaUsage`], with a place for each value: the records of [`Quotas`] leave out what is not
/// set.
#[derive(Serialize, Deserialize)]
pub(super) struct QuotaRecord {
    layer_quota: Option<u64>,
    cpu_seconds: Option<u64>,
    cpu_milli: Option<u32>,
    disk_rate: Option<u64>,
    link_rate: Option<u64>,
    layer_limit: Option<u64>,
    layer_bytes: Option<u64>,
    is_layer_full: bool,
}

impl From<QuotaUsage> for QuotaRecord {
    fn from(usage: QuotaUsage) -> Self {
        Self {
            layer_quota: usage.quotas.layer_bytes,
            cpu_seconds: usage.quotas.cpu_seconds,
            cpu_milli: usage.quotas.cpu_milli,
            disk_rate: usage.quotas.disk_rate,
            link_rate: usage.quotas.link_rate,
            layer_limit: usage.layer_limit,
            layer_bytes: usage.layer_bytes,
            is_layer_full: usage.is_layer_full,
        }
    }
}

impl From<QuotaRecord> for QuotaUsage {
    fn from(record: QuotaRecord) -> Self {
        Self {
            quotas: Quotas {
                layer_bytes: record.layer_quota,
                cpu_seconds: record.cpu_seconds,
                cpu_milli: record.cpu_milli,
                disk_rate: record.disk_rate,
                link_rate: record.link_rate,
            },
            layer_limit: record.layer_limit,
            layer_bytes: record.layer_bytes,
            is_layer_full: record.is_layer_full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_arrives() {
        let quotas = Quotas {
            layer_bytes: Some(1),
            cpu_seconds: Some(2),
            cpu_milli: Some(3),
            disk_rate: Some(4),
            link_rate: None,
        };
        let usage = QuotaUsage {
            quotas,
            layer_limit: Some(5),
            layer_bytes: Some(6),
            is_layer_full: true,
        };
        let bytes = postcard::to_allocvec(&QuotaRecord::from(usage)).unwrap();
        let record: QuotaRecord = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(QuotaUsage::from(record), usage);
    }
}

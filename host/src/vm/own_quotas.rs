use crate::{
    backend::LayerQuota,
    quotas::{QuotaUsage, Quotas},
};

/// The quotas of a VM that this program owns.
#[derive(Clone, Debug)]
pub(super) struct OwnQuotas {
    pub(super) quotas: Quotas,
    /// `None` if the backend has no layers.
    pub(super) layer: Option<LayerQuota>,
}

impl OwnQuotas {
    /// Returns them, and how much of them is used.
    pub(super) fn usage(&self) -> QuotaUsage {
        match &self.layer {
            Some(layer) => layer.usage(self.quotas),
            None => QuotaUsage::without_layer(self.quotas),
        }
    }
}

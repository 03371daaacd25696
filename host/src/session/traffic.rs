/// How many bytes were received and sent on the links of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkTraffic {
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

use vmcell_wire::Channel;

use super::Filled;
use crate::link::{LinkError, outgoing::Outgoing};

/// In place of the streams of a kind of task that the agent was compiled
/// without: there are none. `T` is the table of these tasks.
pub(crate) enum AbsentStream {}

impl AbsentStream {
    pub(super) fn on_link_lost<T>(&self, _: &mut T) {
        match *self {}
    }

    pub(super) fn abandon<T>(&self, _: &mut T) {
        match *self {}
    }

    pub(super) fn stop_watching<T>(&self, _: &mut T) {
        match *self {}
    }

    pub(super) fn cancel<T>(&self, _: &mut T) {
        match *self {}
    }

    pub(super) fn credit(&mut self, _: Channel, _: u32) -> Result<(), LinkError> {
        match *self {}
    }

    pub(super) fn input<T>(&mut self, _: &[u8], _: &mut T) -> Result<(), LinkError> {
        match *self {}
    }

    pub(super) fn answer<T>(&mut self, _: &[u8], _: &mut T) -> Result<Option<u32>, LinkError> {
        match *self {}
    }

    pub(super) fn input_ended<T>(&mut self, _: &mut T) {
        match *self {}
    }

    pub(super) fn fill<T>(&mut self, _: &mut Outgoing, _: &mut T) -> Result<Filled, LinkError> {
        match *self {}
    }
}

use alloc::{vec, vec::Vec};

use super::class::Class;

/// What a machine does, step by step. Where a step leads is counted from the
/// step itself, so that steps can be copied and moved together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Takes this byte.
    Byte(u8),
    /// Takes a byte of the class with this number.
    Class(u16),
    /// Goes on if this is so.
    Look(Look),
    /// Goes on there.
    Jump(i32),
    /// Goes on in both places.
    Split(i32, i32),
    /// It matches.
    Done,
}

/// What must be so at a place between bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Start,
    End,
    Boundary,
    NoBoundary,
}

/// A whole expression.
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) classes: Vec<Class>,
}

/// More steps make an expression too large.
pub(super) const MAX_STEPS: usize = 1000;

/// It is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Some steps in a row, the last of which leads behind them.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece(Vec<Step>);

impl Piece {
    pub(super) fn of(step: Step) -> Self {
        Self(vec![step])
    }

    pub(super) fn into_steps(self) -> Vec<Step> {
        self.0
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Cuts off everything behind a place.
    pub(super) fn split_off(&mut self, place: usize) -> Self {
        Self(self.0.split_off(place.min(self.0.len())))
    }

    pub(super) fn append(&mut self, more: &Self) -> Result<(), TooLarge> {
        if self.len().saturating_add(more.len()) > MAX_STEPS {
            return Err(TooLarge);
        }
        self.0.extend_from_slice(&more.0);
        Ok(())
    }

    /// This or the other one.
    pub(super) fn or(self, other: &Self) -> Result<Self, TooLarge> {
        let mut either = Self::of(Step::Split(1, distance(self.len(), 2)?));
        either.append(&self)?;
        either.append(&Self::of(Step::Jump(distance(other.len(), 1)?)))?;
        either.append(other)?;
        Ok(either)
    }

    /// This, `least` to `most` times; none is any number of times.
    pub(super) fn repeated(&self, least: u32, most: Option<u32>) -> Result<Self, TooLarge> {
        let mut all = Self::default();
        for _ in 0..least {
            // Nothing any number of times is nothing, but takes its time.
            if self.0.is_empty() {
                break;
            }
            all.append(self)?;
        }
        match most {
            None => all.append(&self.any_number()?)?,
            Some(most) => {
                let perhaps = self.perhaps()?;
                for _ in least..most {
                    if self.0.is_empty() {
                        break;
                    }
                    all.append(&perhaps)?;
                }
            }
        }
        Ok(all)
    }

    fn perhaps(&self) -> Result<Self, TooLarge> {
        let mut perhaps = Self::of(Step::Split(1, distance(self.len(), 1)?));
        perhaps.append(self)?;
        Ok(perhaps)
    }

    fn any_number(&self) -> Result<Self, TooLarge> {
        let mut any = Self::of(Step::Split(1, distance(self.len(), 2)?));
        any.append(self)?;
        let back = distance(self.len(), 1)?.saturating_neg();
        any.append(&Self::of(Step::Jump(back)))?;
        Ok(any)
    }
}

fn distance(length: usize, more: usize) -> Result<i32, TooLarge> {
    i32::try_from(length.saturating_add(more)).map_err(|_| TooLarge)
}

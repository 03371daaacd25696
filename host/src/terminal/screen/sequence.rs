/// How many numbers a control sequence can have. One with more is not carried out.
const MAX_NUMBERS: usize = 32;

/// How many bytes can be before and behind the numbers. One with more is not
/// carried out.
const MAX_INTERMEDIATES: usize = 2;

/// A control sequence, ECMA-48 5.4, as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    numbers: [u16; MAX_NUMBERS],
    /// How many of them there are, the one that is being read included.
    count: usize,
    /// A bit for each number that a colon ties to the one before it.
    subparameter: u32,
    intermediates: [u8; MAX_INTERMEDIATES],
    intermediate_count: usize,
    /// There was more than fits.
    overflowed: bool,
}

impl Sequence {
    /// Begins anew.
    pub(super) fn clear(&mut self) {
        self.numbers[0] = 0;
        self.count = 1;
        self.subparameter = 0;
        self.intermediate_count = 0;
        self.overflowed = false;
    }

    pub(super) fn digit(&mut self, byte: u8) {
        if let Some(number) = self.numbers.get_mut(self.count.saturating_sub(1)) {
            let digit = u16::from(byte.saturating_sub(b'0'));
            *number = number.saturating_mul(10).saturating_add(digit);
        }
    }

    /// Ends a number.
    pub(super) fn end_number(&mut self, subparameter: bool) {
        let Some(next) = self.numbers.get_mut(self.count) else {
            self.overflowed = true;
            return;
        };
        *next = 0;
        self.subparameter |= u32::from(subparameter) << self.count;
        self.count = self.count.saturating_add(1);
    }

    /// Takes a byte that says which family the sequence belongs to.
    pub(super) fn push_intermediate(&mut self, byte: u8) {
        match self.intermediates.get_mut(self.intermediate_count) {
            Some(free) => {
                *free = byte;
                self.intermediate_count = self.intermediate_count.saturating_add(1);
            }
            None => self.overflowed = true,
        }
    }

    /// The family, if it is small enough to be one that we know.
    pub(super) fn intermediates(&self) -> Option<&[u8]> {
        match self.overflowed {
            true => None,
            false => self.intermediates.get(..self.intermediate_count),
        }
    }

    /// The numbers, together with those that are tied to them.
    pub(super) fn parameters(&self) -> Parameters<'_> {
        Parameters {
            sequence: self,
            next: 0,
        }
    }

    /// A number by its place. 0 if it is not there.
    pub(super) fn parameter(&self, index: usize) -> usize {
        let parameter = self.parameters().nth(index);
        parameter
            .and_then(|parameter| parameter.first().copied())
            .unwrap_or(0)
            .into()
    }

    /// The first number, where nothing and 0 mean 1.
    pub(super) fn first_or_one(&self) -> usize {
        usize::from(self.numbers[0]).max(1)
    }

    /// How many numbers there are.
    pub(super) fn number_count(&self) -> usize {
        self.count
    }
}

/// The parameters of a sequence, one by one.
pub(super) struct Parameters<'a> {
    sequence: &'a Sequence,
    next: usize,
}

impl<'a> Iterator for Parameters<'a> {
    type Item = &'a [u16];

    fn next(&mut self) -> Option<&'a [u16]> {
        let Sequence {
            numbers,
            count,
            subparameter,
            ..
        } = self.sequence;
        let first = self.next;
        if first >= *count {
            return None;
        }
        let mut end = first.saturating_add(1);
        while end < *count && subparameter >> end & 1 == 1 {
            end = end.saturating_add(1);
        }
        self.next = end;
        numbers.get(first..end)
    }
}

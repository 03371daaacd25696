//! The samples of one tier. Pure: the caller says what time it is.

use std::{collections::VecDeque, time::Duration};

use super::{
    MetricsTier, Sample,
    reading::{Reading, percent},
    sample::{milliseconds, milliseconds_since_1970, time_of},
};

/// The samples of one tier: of all buckets of time that have ended, and of the one that goes
/// on. A bucket is as long as the tier's resolution, and is numbered by the time since
/// sampling began.
#[derive(Debug)]
pub(super) struct Ring {
    resolution: u64,
    /// How many buckets are kept, with the open one.
    capacity: u64,
    /// The buckets that have ended. Empty ones are left out.
    records: VecDeque<Record>,
    open: Option<OpenBucket>,
}

/// A sample of a bucket that has ended, in few bytes.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// Milliseconds since 1970.
    time: u64,
    /// Milliseconds since sampling began.
    elapsed: u64,
    received_bytes: u64,
    sent_bytes: u64,
    cpu_percent: f32,
    cpu_percent_max: f32,
    memory: Units,
    memory_max: Units,
    disk: Units,
    processes: Count,
}

/// Bytes in units of 4 KiB: up to 16 TiB in 4 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Units(u32);

/// A number that may be unknown, in 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count(u32);

/// The bucket that goes on.
#[derive(Clone, Copy, Debug)]
struct OpenBucket {
    number: u64,
    last: Reading,
    cpu: Duration,
    interval: Duration,
    cpu_percent_max: f32,
    memory_sum: u128,
    memory_max: u64,
    /// The largest number of processes.
    processes: Option<u32>,
    received_bytes: u64,
    sent_bytes: u64,
    readings: u32,
}

/// How many records are allocated at a time.
const RECORDS_PER_STEP: usize = 64;

impl Ring {
    pub(super) const fn new(tier: MetricsTier) -> Self {
        let resolution = tier.resolution().as_secs();
        Self {
            resolution: resolution * 1000,
            capacity: tier.span().as_secs() / resolution,
            records: VecDeque::new(),
            open: None,
        }
    }

    /// Adds a reading. One that is not later than those before counts for the open bucket.
    pub(super) fn add(&mut self, reading: &Reading) {
        let number = milliseconds(reading.elapsed) / self.resolution;
        match &mut self.open {
            Some(open) if number <= open.number => open.add(reading),
            open => {
                let ended = open.replace(OpenBucket::new(number, reading));
                self.expire(number);
                if let Some(ended) = ended.filter(|ended| !self.is_expired(ended.number, number)) {
                    self.push(ended.record());
                }
            }
        }
    }

    /// Removes and returns all samples.
    pub(super) fn take(&mut self) -> Vec<Sample> {
        let samples = self.samples();
        self.records = VecDeque::new();
        self.open = None;
        samples
    }

    /// Returns all samples, the oldest first.
    pub(super) fn samples(&self) -> Vec<Sample> {
        let open = self.open.as_ref().map(OpenBucket::record);
        let records = self.records.iter().copied().chain(open);
        records.map(Record::sample).collect()
    }

    fn expire(&mut self, newest: u64) {
        while let Some(oldest) = self.records.front() {
            if !self.is_expired(oldest.elapsed / self.resolution, newest) {
                return;
            }
            self.records.pop_front();
        }
    }

    fn is_expired(&self, number: u64, newest: u64) -> bool {
        newest.saturating_sub(number) >= self.capacity
    }

    fn push(&mut self, record: Record) {
        if self.records.len() == self.records.capacity() {
            let most = usize::try_from(self.capacity).unwrap_or(usize::MAX);
            let rest = most.saturating_sub(self.records.len());
            self.records.reserve_exact(rest.clamp(1, RECORDS_PER_STEP));
        }
        self.records.push_back(record);
    }
}

impl OpenBucket {
    fn new(number: u64, reading: &Reading) -> Self {
        let mut bucket = Self {
            number,
            last: *reading,
            cpu: Duration::ZERO,
            interval: Duration::ZERO,
            cpu_percent_max: 0.0,
            memory_sum: 0,
            memory_max: 0,
            processes: None,
            received_bytes: 0,
            sent_bytes: 0,
            readings: 0,
        };
        bucket.add(reading);
        bucket
    }

    fn add(&mut self, reading: &Reading) {
        self.last = *reading;
        self.cpu = self.cpu.saturating_add(reading.cpu);
        self.interval = self.interval.saturating_add(reading.interval);
        let cpu_percent = percent(reading.cpu, reading.interval);
        self.cpu_percent_max = self.cpu_percent_max.max(cpu_percent);
        self.memory_sum = self.memory_sum.saturating_add(reading.memory_bytes.into());
        self.memory_max = self.memory_max.max(reading.memory_bytes);
        // `None` is less than any number.
        self.processes = self.processes.max(reading.processes);
        self.received_bytes = self.received_bytes.saturating_add(reading.received_bytes);
        self.sent_bytes = self.sent_bytes.saturating_add(reading.sent_bytes);
        self.readings = self.readings.saturating_add(1);
    }

    fn record(&self) -> Record {
        let memory = self.memory_sum / u128::from(self.readings.max(1));
        Record {
            time: milliseconds_since_1970(self.last.time),
            elapsed: milliseconds(self.last.elapsed),
            received_bytes: self.received_bytes,
            sent_bytes: self.sent_bytes,
            cpu_percent: percent(self.cpu, self.interval),
            cpu_percent_max: self.cpu_percent_max,
            memory: Units::of(u64::try_from(memory).unwrap_or(u64::MAX)),
            memory_max: Units::of(self.memory_max),
            disk: self.last.disk_bytes.map_or(Units::UNKNOWN, Units::of),
            processes: Count::of(self.processes),
        }
    }
}

impl Record {
    fn sample(self) -> Sample {
        Sample {
            // Whatever the clock says is a time that can be represented.
            time: time_of(self.time).unwrap_or(std::time::UNIX_EPOCH),
            elapsed: Duration::from_millis(self.elapsed),
            cpu_percent: self.cpu_percent,
            cpu_percent_max: self.cpu_percent_max,
            memory_bytes: self.memory.bytes(),
            memory_bytes_max: self.memory_max.bytes(),
            disk_bytes: (self.disk != Units::UNKNOWN).then(|| self.disk.bytes()),
            processes: self.processes.get(),
            received_bytes: self.received_bytes,
            sent_bytes: self.sent_bytes,
        }
    }
}

impl Units {
    const SIZE: u64 = 4096;
    const UNKNOWN: Self = Self(u32::MAX);
    const LARGEST: u32 = u32::MAX - 1;

    /// Rounds up.
    fn of(bytes: u64) -> Self {
        let units = u32::try_from(bytes.div_ceil(Self::SIZE));
        Self(units.map_or(Self::LARGEST, |units| units.min(Self::LARGEST)))
    }

    fn bytes(self) -> u64 {
        u64::from(self.0) * Self::SIZE
    }
}

impl Count {
    const UNKNOWN: u32 = u32::MAX;

    /// The largest number stands for all that are larger.
    fn of(count: Option<u32>) -> Self {
        Self(count.map_or(Self::UNKNOWN, |count| count.min(Self::UNKNOWN - 1)))
    }

    fn get(self) -> Option<u32> {
        (self.0 != Self::UNKNOWN).then_some(self.0)
    }
}

/// Returns the sample of a single reading.
pub(super) fn sample_of(reading: &Reading) -> Sample {
    OpenBucket::new(0, reading).record().sample()
}

#[cfg(test)]
mod tests;

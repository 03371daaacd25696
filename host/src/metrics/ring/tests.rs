use std::time::SystemTime;

use proptest::prelude::*;

use super::*;

const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// A clock of the test, and a VM that it reads.
struct FakeVm {
    elapsed: Duration,
    time: SystemTime,
}

impl FakeVm {
    fn new() -> Self {
        Self {
            elapsed: Duration::ZERO,
            time: SystemTime::UNIX_EPOCH + 50 * YEAR,
        }
    }

    /// Reads it after some seconds, in which it has used this much of a processor.
    fn after(&mut self, seconds: u64, cpu_percent: u32) -> Reading {
        let interval = Duration::from_secs(seconds);
        self.elapsed += interval;
        self.time += interval;
        Reading {
            elapsed: self.elapsed,
            time: self.time,
            interval,
            cpu: interval * cpu_percent / 100,
            memory_bytes: u64::from(cpu_percent) << 20,
            disk_bytes: Some(self.elapsed.as_secs() << 12),
            processes: Some(cpu_percent),
            received_bytes: 10,
            sent_bytes: 1,
        }
    }
}

#[test]
fn each_tier_keeps_its_span_and_no_more() {
    for (tier, expected) in MetricsTier::ALL.into_iter().zip([600, 720, 720]) {
        let mut ring = Ring::new(tier);
        let mut vm = FakeVm::new();
        for _ in 0..100_000 {
            ring.add(&vm.after(1, 50));
        }
        let samples = ring.samples();
        assert_eq!(samples.len(), expected, "{tier}");
        assert_eq!(samples.last().unwrap().elapsed.as_secs(), 100_000);
        let covered = vm.elapsed - samples.first().unwrap().elapsed;
        assert!(covered < tier.span() && covered >= tier.span() - 2 * tier.resolution());
        assert!(ring.records.capacity() <= expected, "{tier}");
    }
}

#[test]
fn a_day_takes_no_more_memory_than_the_documentation_says() {
    assert_eq!(size_of::<Record>(), 56);
    let records = |tier: MetricsTier| tier.span().as_secs() / tier.resolution().as_secs();
    let all: u64 = MetricsTier::ALL.into_iter().map(records).sum();
    assert_eq!(all * 56 / 1024, 111);
    assert!(Ring::new(MetricsTier::OneDay).records.capacity() == 0);
}

#[test]
fn a_coarser_tier_has_averages_largest_values_and_sums() {
    let mut ring = Ring::new(MetricsTier::TwoHours);
    let mut vm = FakeVm::new();
    // The bucket from 0 to 10 s has 9 readings, because the first is after a second.
    for cpu in [0, 0, 0, 0, 0, 0, 0, 0, 90] {
        ring.add(&vm.after(1, cpu));
    }
    let [open] = *ring.samples() else {
        panic!("not one sample");
    };
    assert_eq!((open.cpu_percent, open.cpu_percent_max), (10.0, 90.0));
    assert_eq!(
        (open.memory_bytes, open.memory_bytes_max),
        (10 << 20, 90 << 20)
    );
    assert_eq!(open.disk_bytes, Some(9 << 12));
    assert_eq!(open.processes, Some(90));
    assert_eq!((open.received_bytes, open.sent_bytes), (90, 9));
    assert_eq!((open.elapsed, open.time), (vm.elapsed, vm.time));
    ring.add(&vm.after(1, 30));
    let [ended, open] = *ring.samples() else {
        panic!("not two samples");
    };
    assert_eq!(ended.cpu_percent, 10.0);
    assert_eq!((open.cpu_percent, open.received_bytes), (30.0, 10));
}

#[test]
fn processes_that_nobody_has_counted_are_not_taken_for_none() {
    let mut ring = Ring::new(MetricsTier::TwoHours);
    let mut vm = FakeVm::new();
    let mut processes = |counts: &[Option<u32>]| {
        for count in counts {
            let reading = Reading {
                processes: *count,
                ..vm.after(1, 0)
            };
            ring.add(&reading);
        }
        ring.take().iter().map(|it| it.processes).next_back()
    };
    assert_eq!(processes(&[None, None]), Some(None));
    assert_eq!(processes(&[None, Some(0)]), Some(Some(0)));
    assert_eq!(processes(&[Some(7), None]), Some(Some(7)));
    // Whatever a guest says.
    assert_eq!(processes(&[Some(u32::MAX)]), Some(Some(u32::MAX - 1)));
}

#[test]
fn a_reading_after_a_stall_counts_for_its_whole_time() {
    let mut ring = Ring::new(MetricsTier::OneDay);
    let mut vm = FakeVm::new();
    ring.add(&vm.after(1, 100));
    ring.add(&vm.after(99, 0));
    let [open] = *ring.samples() else {
        panic!("not one sample");
    };
    assert_eq!((open.cpu_percent, open.cpu_percent_max), (1.0, 100.0));
}

#[test]
fn a_clock_that_is_set_changes_only_the_times_of_later_samples() {
    let mut ring = Ring::new(MetricsTier::TenMinutes);
    let mut vm = FakeVm::new();
    for second in 0..60 {
        match second {
            20 => vm.time -= YEAR,
            40 => vm.time += 10 * YEAR,
            // Before 1970.
            59 => vm.time = SystemTime::UNIX_EPOCH - 2 * YEAR,
            _ => {}
        }
        ring.add(&vm.after(1, 10));
    }
    let samples = ring.samples();
    assert_eq!(samples.len(), 60);
    let elapsed = samples.iter().map(|sample| sample.elapsed.as_secs());
    assert!(elapsed.eq(1..=60));
    assert!(samples.iter().all(|sample| sample.cpu_percent == 10.0));
    assert!(samples[20].time < samples[19].time && samples[40].time > samples[19].time);
    assert_eq!(samples[59].time, SystemTime::UNIX_EPOCH);
}

#[test]
fn what_is_taken_is_gone_and_sampling_goes_on() {
    let mut ring = Ring::new(MetricsTier::TenMinutes);
    let mut vm = FakeVm::new();
    for _ in 0..100 {
        ring.add(&vm.after(1, 10));
    }
    assert_eq!(ring.take().len(), 100);
    assert_eq!(ring.samples().len(), 0);
    assert_eq!(ring.records.capacity(), 0);
    ring.add(&vm.after(1, 20));
    assert_eq!(ring.samples()[0].cpu_percent, 20.0);
}

#[test]
fn sizes_are_rounded_up_and_have_a_largest() {
    for (bytes, expected) in [
        (0, 0),
        (1, 4096),
        (4096, 4096),
        (4097, 8192),
        (u64::MAX, u64::from(u32::MAX - 1) * 4096),
    ] {
        assert_eq!(Units::of(bytes).bytes(), expected);
    }
}

proptest! {
    #[test]
    fn any_sequence_of_readings_stays_in_bounds_and_in_order(
        steps in prop::collection::vec((0..u64::MAX / 1_000_000_000, 0..1000_u32), 0..400),
        small in 0..1_000_000_u64,
    ) {
        for tier in MetricsTier::ALL {
            let mut ring = Ring::new(tier);
            for (number, (elapsed, cpu)) in steps.iter().enumerate() {
                let mut vm = FakeVm::new();
                // Jumps in both directions, large and small ones.
                vm.elapsed = Duration::from_millis(match number % 3 {
                    0 => *elapsed,
                    _ => elapsed % (small + 1),
                });
                ring.add(&vm.after(number as u64 % 3, *cpu));
            }
            let samples = ring.samples();
            let most = tier.span().as_secs() / tier.resolution().as_secs();
            prop_assert!(samples.len() as u64 <= most);
            prop_assert_eq!(samples.is_empty(), steps.is_empty());
            prop_assert!(samples.iter().all(|sample| sample.cpu_percent.is_finite()));
        }
    }
}

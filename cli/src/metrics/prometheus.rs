//! The text format of Prometheus:
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use vmcell::metrics::Sample;

/// Returns a sample as gauges with the label `vm`. Without a sample, they have no values.
pub(super) fn text(id: &str, sample: Option<&Sample>) -> String {
    type Value = fn(&Sample) -> Option<f64>;
    let gauges: [(&str, &str, Value); 6] = [
        (
            "vmcell_cpu_percent",
            "Processor time of the last second, in percent of one processor.",
            |sample| Some(sample.cpu_percent.into()),
        ),
        (
            "vmcell_memory_bytes",
            "Resident memory of the VMM, with the memory that the guest has touched.",
            |sample| Some(sample.memory_bytes as f64),
        ),
        (
            "vmcell_disk_bytes",
            "Allocated bytes of the file that the VM writes to.",
            |sample| sample.disk_bytes.map(|bytes| bytes as f64),
        ),
        (
            "vmcell_processes",
            "Processes and threads of commands, services and terminals, as the guest counts them.",
            |sample| sample.processes.map(f64::from),
        ),
        (
            "vmcell_link_received_bytes",
            "Bytes that the guest has sent to the host in the last second.",
            |sample| Some(sample.received_bytes as f64),
        ),
        (
            "vmcell_link_sent_bytes",
            "Bytes that the host has sent to the guest in the last second.",
            |sample| Some(sample.sent_bytes as f64),
        ),
    ];
    let mut text = String::new();
    for (name, help, value) in gauges {
        text += &format!("# HELP {name} {help}\n# TYPE {name} gauge\n");
        if let Some(value) = sample.and_then(value) {
            text += &format!("{name}{{vm=\"{}\"}} {value}\n", escaped(id));
        }
    }
    text
}

/// Escapes the value of a label.
fn escaped(label: &str) -> String {
    let label = label.replace('\\', "\\\\");
    label.replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::{super::samples::metrics_with, *};

    #[test]
    fn each_gauge_has_its_help_its_type_and_its_value() {
        let metrics = metrics_with(&[12.5]);
        let text = text("a\"b", metrics.samples.last());
        assert!(text.starts_with(
            "# HELP vmcell_cpu_percent Processor time of the last second, in percent of one \
             processor.\n# TYPE vmcell_cpu_percent gauge\nvmcell_cpu_percent{vm=\"a\\\"b\"} 12.5\n"
        ));
        assert!(text.contains("\nvmcell_memory_bytes{vm=\"a\\\"b\"} 104857600\n"));
        // It is unknown.
        assert!(text.contains("# TYPE vmcell_disk_bytes gauge\n# HELP"));
        assert!(text.contains("\nvmcell_processes{vm=\"a\\\"b\"} 7\n"));
        assert!(text.ends_with("vmcell_link_sent_bytes{vm=\"a\\\"b\"} 0\n"));
    }

    #[test]
    fn without_a_sample_there_are_no_values() {
        let text = text("a", None);
        assert!(text.lines().all(|line| line.starts_with("# ")), "{text}");
    }
}

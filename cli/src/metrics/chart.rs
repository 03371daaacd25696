//! Charts of characters, for a terminal.

use super::series::{Charts, Series};

/// The height of a chart in rows, and of a row in steps.
const ROWS: usize = 4;
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The width of the labels on the left.
const LABELS: usize = 8;

/// Draws all charts, one above the other.
pub(super) fn text(charts: &Charts, columns: usize) -> String {
    let width = columns.saturating_sub(LABELS + 1).max(10);
    let mut text = String::new();
    for series in &charts.series {
        text += &format!("{}: {}\n", series.title, series.summary());
        for line in lines(charts, series, width) {
            text += line.trim_end();
            text.push('\n');
        }
    }
    let (start, end) = (charts.time_label(charts.start), "now");
    let between = width.saturating_sub(start.len() + end.len());
    text + &format!(
        "{:LABELS$} {start}{:between$}{end}\n",
        "",
        "",
        between = between
    )
}

/// Draws one chart, from the top.
fn lines(charts: &Charts, series: &Series, width: usize) -> Vec<String> {
    let top = series.top();
    let step = (charts.end - charts.start) / width as f64;
    let heights: Vec<_> = (0..width)
        .map(|column| {
            let from = charts.start + step * column as f64;
            let value = charts.largest(series, from, from + step)?;
            let steps = (ROWS * STEPS.len()) as f64;
            // A number from 0 to the height of the chart.
            Some((value / top * steps).round() as usize)
        })
        .collect();
    let rows = (0..ROWS).rev().map(|row| {
        let label = match row {
            0 => series.unit.label(0.0),
            row if row == ROWS - 1 => series.unit.label(top),
            _ => String::new(),
        };
        let cells = heights.iter().map(|height| cell(*height, row));
        format!("{label:>LABELS$} {}", cells.collect::<String>())
    });
    rows.collect()
}

/// Returns the character of a column in a row. The lowest row shows that there is a sample
/// even if it is 0.
fn cell(height: Option<usize>, row: usize) -> char {
    let Some(height) = height else { return ' ' };
    let height = if row == 0 { height.max(1) } else { height };
    match height.saturating_sub(row * STEPS.len()) {
        0 => ' ',
        steps => STEPS.get(steps - 1).copied().unwrap_or('█'),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::samples::metrics_with, *};

    #[test]
    fn a_chart_has_its_labels_and_its_shape() {
        let percents: Vec<_> = (0..40).map(|second| f64::from(second) * 2.5).collect();
        let charts = Charts::new(&metrics_with(&percents));
        let text = text(&charts, 49);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "processor: 97.5%, at most 97.5%");
        assert_eq!(
            lines[1],
            "  100.0%                                ▁▂▂▃▄▅▆▆▇"
        );
        assert_eq!(
            lines[4],
            "    0.0% ▁▁▂▂▃▄▅▆▆▇██████████████████████████████"
        );
        assert_eq!(lines[5], "memory: 100M, at most 100M");
        assert_eq!(
            lines.last().unwrap(),
            &"         -40s                                 now"
        );
        assert!(lines.iter().all(|line| line.chars().count() <= 49));
    }

    #[test]
    fn a_narrow_terminal_and_no_samples_are_no_error() {
        for (percents, columns) in [(&[][..], 80), (&[50.0], 1), (&[50.0], 500)] {
            let text = text(&Charts::new(&metrics_with(percents)), columns);
            assert!(text.ends_with("now\n"), "{text}");
        }
    }
}

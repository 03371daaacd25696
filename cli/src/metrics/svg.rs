//! Charts as an SVG image that needs nothing else.

use super::series::{Charts, Point, Series};

const WIDTH: f64 = 800.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 780.0;
/// Where the first chart begins, and the distance from one to the next.
const FIRST: f64 = 50.0;
const DISTANCE: f64 = 130.0;
const HEIGHT: f64 = 80.0;

/// The times that have a label, as parts of the whole.
const TIMES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// The colours of the charts.
const COLOURS: [&str; 6] = [
    "#1f77b4", "#2ca02c", "#9467bd", "#0e7490", "#d97706", "#b91c1c",
];

/// Draws all charts, one above the other.
pub(super) fn picture(id: &str, charts: &Charts) -> String {
    let height = FIRST + DISTANCE * charts.series.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" \
         fill=\"#333\">\n<title>{0}</title>\n<rect width=\"100%\" height=\"100%\" \
         fill=\"#fff\"/>\n<text x=\"{LEFT}\" y=\"24\" font-size=\"16\">{0}</text>\n",
        escaped(id)
    );
    for (number, series) in charts.series.iter().enumerate() {
        let top = FIRST + DISTANCE * number as f64;
        let colour = COLOURS.get(number % COLOURS.len()).unwrap_or(&"#333");
        svg += &chart(charts, series, top, colour);
    }
    svg + "</svg>\n"
}

fn chart(charts: &Charts, series: &Series, top: f64, colour: &str) -> String {
    let bottom = top + HEIGHT;
    let title = escaped(&format!("{}: {}", series.title, series.summary()));
    let mut svg = format!("<text x=\"{LEFT}\" y=\"{}\">{title}</text>\n", top - 6.0);
    let scale = series.top();
    for part in [0.0, 0.5, 1.0] {
        let y = bottom - HEIGHT * part;
        let label = escaped(&series.unit.label(scale * part));
        svg += &format!(
            "<path d=\"M{LEFT} {y}H{RIGHT}\" stroke=\"#ddd\"/>\n<text x=\"{}\" y=\"{}\" \
             text-anchor=\"end\">{label}</text>\n",
            LEFT - 6.0,
            y + 4.0
        );
    }
    for part in TIMES {
        let x = LEFT + (RIGHT - LEFT) * part;
        let label = charts.time_label(charts.start + (charts.end - charts.start) * part);
        svg += &format!(
            "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
            bottom + 16.0,
            escaped(&label)
        );
    }
    let place = |point: &Point| {
        let time = (point.elapsed - charts.start) / (charts.end - charts.start);
        let x = LEFT + (RIGHT - LEFT) * time.clamp(0.0, 1.0);
        (x, bottom - HEIGHT * (point.value / scale).clamp(0.0, 1.0))
    };
    for run in charts.runs(series) {
        let places: Vec<_> = run.iter().map(place).collect();
        let (Some((first, _)), Some((last, _))) = (places.first(), places.last()) else {
            continue;
        };
        let line: Vec<_> = places
            .iter()
            .map(|(x, y)| format!("{x:.1} {y:.1}"))
            .collect();
        let line = line.join("L");
        svg += &format!(
            "<path d=\"M{first:.1} {bottom}L{line}L{last:.1} {bottom}Z\" fill=\"{colour}\" \
             fill-opacity=\"0.2\"/>\n<path d=\"M{line}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"1.5\" stroke-linecap=\"round\"/>\n"
        );
    }
    svg
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::{super::samples::metrics_with, *};

    #[test]
    fn a_picture_is_valid_and_has_labels_and_lines() {
        let mut metrics = metrics_with(&[10.0; 40]);
        metrics.samples.drain(10..20);
        let svg = picture("a<b & \"c\"", &Charts::new(&metrics));
        let document = roxmltree::Document::parse(&svg).unwrap();
        let texts: Vec<_> = document.descendants().filter_map(|it| it.text()).collect();
        for expected in [
            "a<b & \"c\"",
            "processor: 10.0%, at most 10.0%",
            "5.0%",
            "128M",
            "processes: 7, at most 7",
            "-40s",
            "now",
        ] {
            assert!(texts.contains(&expected), "{expected}: {texts:?}");
        }
        let lines = document.descendants().filter(|it| {
            let is_line = it.attribute("fill") == Some("none");
            it.has_tag_name(("http://www.w3.org/2000/svg", "path")) && is_line
        });
        // Two of each series, because there is a gap.
        assert_eq!(lines.count(), 10);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn no_samples_and_one_sample_are_valid_too() {
        for percents in [&[][..], &[0.0]] {
            let svg = picture("vm", &Charts::new(&metrics_with(percents)));
            roxmltree::Document::parse(&svg).unwrap();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}

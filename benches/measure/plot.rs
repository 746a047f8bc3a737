//! Curves as plain SVG text.

use std::fmt::Write;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 140.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
const COLOURS: [&str; 4] = ["#1f6feb", "#d1242f", "#1a7f37", "#8250df"];

/// A name, and its points: a count of something, and a ratio.
pub type Curve = (String, Vec<(f64, f64)>);

/// The curves over a logarithmic axis; the ratio axis starts at 0.
pub fn svg(title: &str, along: &str, up: &str, curves: &[Curve]) -> String {
    let points = || curves.iter().flat_map(|(_, points)| points);
    let most = points().map(|point| point.1).fold(1.0, f64::max) * 1.2;
    let first = points().map(|point| point.0).fold(f64::MAX, f64::min);
    let last = points().map(|point| point.0).fold(first * 2.0, f64::max);
    let x = |count: f64| {
        let part = (count / first).ln() / (last / first).ln();
        LEFT + part * (WIDTH - LEFT - RIGHT)
    };
    let y = |ratio: f64| HEIGHT - BOTTOM - ratio / most * (HEIGHT - TOP - BOTTOM);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let mut text = |x: f64, y: f64, anchor: &str, colour: &str, text: &str| {
        let _ = writeln!(
            out,
            "<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>"
        );
    };
    text(LEFT, 22.0, "start", "black", title);
    text(
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 10.0,
        "middle",
        "black",
        along,
    );
    text(LEFT, TOP - 6.0, "start", "dimgray", up);
    let mut counts: Vec<f64> = points().map(|point| point.0).collect();
    counts.sort_by(f64::total_cmp);
    counts.dedup();
    for count in counts {
        text(
            x(count),
            HEIGHT - BOTTOM + 18.0,
            "middle",
            "dimgray",
            &grouped(count),
        );
    }
    let steps = 4;
    for step in 0..=steps {
        let ratio = most * f64::from(step) / f64::from(steps);
        text(
            LEFT - 8.0,
            y(ratio) + 4.0,
            "end",
            "dimgray",
            &format!("{ratio:.1}"),
        );
    }
    for ((name, points), colour) in curves.iter().zip(COLOURS) {
        if let Some((count, ratio)) = points.last() {
            text(x(*count) + 8.0, y(*ratio) + 4.0, "start", colour, name);
        }
    }
    for step in 0..=steps {
        let at = y(most * f64::from(step) / f64::from(steps));
        let right = WIDTH - RIGHT;
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"lightgray\"/>"
        );
    }
    for ((_, points), colour) in curves.iter().zip(COLOURS) {
        let line: Vec<String> = points
            .iter()
            .map(|(count, ratio)| format!("{:.1},{:.1}", x(*count), y(*ratio)))
            .collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            line.join(" ")
        );
    }
    out + "</svg>\n"
}

fn grouped(count: f64) -> String {
    match count {
        1000.0.. => format!("{},000", count / 1000.0),
        _ => format!("{count}"),
    }
}

use super::screen;
use crate::terminal::screen::Screen;

/// A screen with nearly every kind of character and style.
fn colourful() -> Screen {
    let mut text =
        String::from("\x1b]0;<script>&\"'\x07\x1b[1;31mbold\x1b[0m \x1b[7mreverse\x1b[0m ");
    text += "\x1b[3;4;9mall\x1b[0m \x1b[48;5;22m漢字\x1b[K\r\n\x1b[0m<a href='x'>&amp;]]>\u{ffff}é\u{301}";
    text += "─┼╔▀▄█░▖⠿☃\x1b[2mdim\x1b[8mhidden";
    screen(60, 3, text)
}

#[test]
fn an_svg_is_xml_whatever_is_on_the_screen() {
    let screen = colourful();
    let svg = screen.to_svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let allowed = ["svg", "title", "rect", "g", "text"];
    for element in document.descendants().filter(|node| node.is_element()) {
        assert!(allowed.contains(&element.tag_name().name()), "{element:?}");
    }
    let mut nodes = document.descendants();
    let title = nodes.find(|node| node.tag_name().name() == "title");
    assert_eq!(title.unwrap().text(), Some("<script>&\"'"));
    let texts: String = document
        .descendants()
        .filter(|node| node.tag_name().name() == "text" && node.is_element())
        .filter_map(|node| node.text())
        .collect();
    assert!(texts.contains("<ahref='x'>&amp;]]>"), "{texts}");
    assert!(texts.contains("漢") && texts.contains("é\u{301}"));
    assert!(!texts.contains("hidden"));
}

#[test]
fn an_svg_puts_every_character_into_its_column() {
    let svg = screen(20, 2, "a漢b\x1b[1mc").to_svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let placed: Vec<_> = document
        .descendants()
        .filter(|node| node.is_element() && node.tag_name().name() == "text")
        .map(|node| {
            (
                node.attribute("x").unwrap(),
                node.attribute("textLength").unwrap(),
                node.text().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        placed,
        [
            ("0", "9", "a"),
            ("9", "18", "漢"),
            ("27", "9", "b"),
            ("36", "9", "c")
        ]
    );
}

#[test]
fn a_png_is_read_by_others_and_has_the_same_pixels() {
    let picture = colourful().to_picture();
    assert_eq!(picture.rgba.len(), picture.width * picture.height * 4);
    let png = picture.to_png();
    let mut reader = png::Decoder::new(std::io::Cursor::new(&png))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(usize::try_from(info.width).unwrap(), picture.width);
    assert_eq!(usize::try_from(info.height).unwrap(), picture.height);
    assert_eq!(info.color_type, png::ColorType::Rgba);
    assert!(pixels == picture.rgba);
}

#[test]
fn a_picture_shows_text_and_colours() {
    let pixels = |printed: &str| {
        screen(4, 1, format!("\x1b[?25l{printed}"))
            .to_picture()
            .rgba
    };
    let has = |printed: &str, colour: [u8; 3]| {
        pixels(printed).chunks(4).any(|pixel| pixel[..3] == colour)
    };
    assert_ne!(pixels("a"), pixels("b"));
    assert_ne!(pixels("a"), pixels("\x1b[1ma"));
    assert_ne!(pixels("a"), pixels("\x1b[3ma"));
    assert_ne!(pixels("a"), pixels("\x1b[4ma"));
    assert_ne!(pixels("│"), pixels("─"));
    assert_eq!(pixels("\x1b[8ma"), pixels(""));
    assert!(has("\x1b[38;2;1;200;3m█", [1, 200, 3]));
    assert!(has("\x1b[48;2;1;200;3m \x1b[0m", [1, 200, 3]));
    assert!(has("\x1b[48;2;1;200;3m\x1b[K", [1, 200, 3]));
}

#[test]
fn every_line_block_and_dot_can_be_drawn_everywhere() {
    for code in (0x2500..=0x259fu32).chain(0x2800..=0x28ff) {
        let character = char::from_u32(code).unwrap();
        let picture = screen(1, 1, format!("\x1b[?25l{character}")).to_picture();
        let seen = picture
            .rgba
            .chunks(4)
            .any(|pixel| pixel != &picture.rgba[..4]);
        assert_eq!(seen, character != '\u{2800}', "{character}");
    }
}

//! A strict parser for the HTML of `ckpt report`: every element is closed in order, every attribute is quoted, and no
//! name is unknown. Every browser reads such HTML in the same way.

/// An element, or a text.
#[derive(Debug)]
pub(crate) struct Node {
    name: String,
    attributes: Vec<(String, String)>,
    children: Vec<Node>,
    text: String,
}

/// Elements without an end tag.
const VOID: [&str; 1] = ["meta"];

pub(crate) fn parse(page: &str) -> Node {
    let mut rest = page.strip_prefix("<!doctype html>\n").unwrap();
    let mut open = vec![Node::new("", Vec::new())];
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("</") {
            let (name, after) = after.split_once('>').unwrap();
            let node = open.pop().unwrap();
            assert_eq!(node.name, name, "is closed out of order");
            open.last_mut().unwrap().children.push(node);
            rest = after;
        } else if let Some(after) = rest.strip_prefix('<') {
            let (node, after) = start_tag(after);
            rest = after;
            if VOID.contains(&&*node.name) {
                open.last_mut().unwrap().children.push(node);
            } else if node.name == "style" {
                let (text, after) = after.split_once("</style>").unwrap();
                let style = Node {
                    text: text.to_owned(),
                    ..node
                };
                open.last_mut().unwrap().children.push(style);
                rest = after;
            } else {
                open.push(node);
            }
        } else {
            let end = rest.find('<').unwrap_or(rest.len());
            let text = Node {
                text: unescaped(&rest[..end]),
                ..Node::new("", Vec::new())
            };
            open.last_mut().unwrap().children.push(text);
            rest = &rest[end..];
        }
    }
    assert_eq!(open.len(), 1, "an element is not closed");
    open.pop().unwrap()
}

fn start_tag(text: &str) -> (Node, &str) {
    let end = text.find([' ', '>']).unwrap();
    let (name, mut rest) = text.split_at(end);
    assert!(
        name.chars()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit()),
        "{name}"
    );
    let mut attributes = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix('>') {
            return (Node::new(name, attributes), after);
        }
        let after = rest
            .strip_prefix(' ')
            .unwrap_or_else(|| panic!("{name}: {:.40}", rest));
        let end = after.find(['=', '>', ' ']).unwrap();
        let (attribute, after) = after.split_at(end);
        let (value, after) = match after.strip_prefix("=\"") {
            Some(after) => after.split_once('"').unwrap(),
            None => ("", after),
        };
        attributes.push((attribute.to_owned(), unescaped(value)));
        rest = after;
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let (entity, after) = rest[at + 1..].split_once(';').unwrap();
        out.push_str(match entity {
            "lt" => "<",
            "gt" => ">",
            "amp" => "&",
            "quot" => "\"",
            "#x27" => "'",
            "#x2f" => "/",
            other => panic!("&{other};"),
        });
        rest = after;
    }
    out.push_str(rest);
    out
}

impl Node {
    fn new(name: &str, attributes: Vec<(String, String)>) -> Node {
        Node {
            name: name.to_owned(),
            attributes,
            children: Vec::new(),
            text: String::new(),
        }
    }

    /// All visible text in it, without the style.
    pub(crate) fn text(&self) -> String {
        if self.name == "style" {
            return String::new();
        }
        let children = self.children.iter().map(Node::text);
        format!("{}{}", self.text, children.collect::<String>())
    }

    /// The elements with this name in it, in order.
    pub(crate) fn all(&self, name: &str) -> Vec<&Node> {
        let mut found = Vec::new();
        for child in &self.children {
            if child.name == name {
                found.push(child);
            }
            found.extend(child.all(name));
        }
        found
    }

    pub(crate) fn each(&self, visit: &mut impl FnMut(&Node)) {
        visit(self);
        self.children.iter().for_each(|child| child.each(visit));
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn children(&self) -> &[Node] {
        &self.children
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let mut attributes = self.attributes.iter();
        let found = attributes.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn attributes(&self) -> &[(String, String)] {
        &self.attributes
    }
}

//! Deserializes values of the text; each error names the value that it is about.

use std::borrow::Cow;

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::failure::Failure;
use super::tree::{Children, Index, Kind, Marks, NONE, Tree};
use super::violation::Code;

/// The tree to read, and the values in it that are skipped.
#[derive(Clone, Copy)]
pub(super) struct View<'de, 'v> {
    pub(super) tree: &'de Tree,
    /// One flag for each value of the tree: whether it is skipped.
    pub(super) hidden: &'v [bool],
}

impl<'de, 'v> View<'de, 'v> {
    pub(super) fn at(self, index: Index) -> At<'de, 'v> {
        At { view: self, index }
    }

    fn is_hidden(&self, index: Index) -> bool {
        self.hidden.get(index as usize).copied().unwrap_or_default()
    }

    fn shows(&self, index: Index) -> bool {
        !self.tree.span(index).is_shadowed() && !self.is_hidden(index)
    }

    fn next(&self, children: &mut Children<'de>) -> Option<Index> {
        children.find(|&child| self.shows(child))
    }
}

/// A newtype struct of this name reads a number as its text, with all digits.
pub(crate) const NUMBER_AS_TEXT: &str = "$agent_checkpoint::number_as_text";

/// One value, as a deserializer.
#[derive(Clone, Copy)]
pub(super) struct At<'de, 'v> {
    view: View<'de, 'v>,
    index: Index,
}

impl<'de, 'v> At<'de, 'v> {
    fn tree(&self) -> &'de Tree {
        self.view.tree
    }

    fn kind(&self) -> Kind {
        self.tree().kind(self.index)
    }

    /// An error belongs to the innermost value that it passes through.
    pub(super) fn placed<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        result.map_err(|failure| self.place(failure))
    }

    fn place(&self, mut failure: Failure) -> Failure {
        if failure.at == NONE {
            failure.at = self.index;
            let missing = failure.missing;
            if let Some(member) = missing.and_then(|name| self.tree().member(self.index, name)) {
                failure.follows = self.view.is_hidden(member);
            }
        }
        failure
    }

    fn wrong_type<T>(&self, expected: &dyn de::Expected) -> Result<T, Failure> {
        let found = match self.kind() {
            Kind::Array => Unexpected::Seq,
            Kind::Object => Unexpected::Map,
            Kind::Null => Unexpected::Unit,
            Kind::String => Unexpected::Other("a string"),
            Kind::Number => Unexpected::Other("a number"),
            Kind::Bool => Unexpected::Other("a boolean"),
        };
        let failure = Failure {
            found: Some(self.kind()),
            ..de::Error::invalid_type(found, expected)
        };
        Err(self.place(failure))
    }

    fn visit_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if self.tree().span(self.index).marks.has(Marks::LONE) {
            return Err(lone_surrogate());
        }
        match self.tree().string(self.index) {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn visit_number<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let number = self.tree().raw(self.index);
        if number == "-0" {
            // `0` as an integer would lose the sign.
            visitor.visit_f64(-0.0)
        } else if let Ok(unsigned) = number.parse() {
            visitor.visit_u64(unsigned)
        } else if let Ok(signed) = number.parse() {
            visitor.visit_i64(signed)
        } else {
            match number.parse() {
                Ok(float) if f64::is_finite(float) => {
                    let result = visitor.visit_f64(float);
                    result.map_err(|failure: Failure| failure.with_number(number))
                }
                _ => Err(Failure::out_of_range(number, &visitor)),
            }
        }
    }

    fn visit_elements<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let mut elements = Elements {
            view: self.view,
            children: self.tree().children(self.index),
        };
        let value = visitor.visit_seq(&mut elements)?;
        match self.view.next(&mut elements.children) {
            None => Ok(value),
            Some(_) => Err(de::Error::invalid_length(
                self.tree().children(self.index).count(),
                &"fewer elements",
            )),
        }
    }

    fn visit_members<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let mut members = Members {
            view: self.view,
            children: self.tree().children(self.index),
            value: None,
        };
        let value = visitor.visit_map(&mut members)?;
        match self.view.next(&mut members.children) {
            None => Ok(value),
            Some(_) => Err(de::Error::invalid_length(
                self.tree().effective(self.index).count(),
                &"fewer members",
            )),
        }
    }

    /// Visits elements whose position matters, so none of them may be skipped.
    fn visit_positions<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let mut elements = self.tree().children(self.index);
        if self.kind() == Kind::Array && elements.any(|element| self.view.is_hidden(element)) {
            return Err(self.place(Failure::following()));
        }
        self.deserialize_any(visitor)
    }

    fn visit_integer<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if self.kind() == Kind::Number {
            let number = self.tree().raw(self.index);
            let is_integer = !number.contains(['.', 'e', 'E']);
            let fits = number.parse::<u64>().is_ok() || number.parse::<i64>().is_ok();
            if number == "-0" {
                return self.placed(visitor.visit_i64(0));
            }
            if is_integer && !fits {
                return Err(self.place(Failure::out_of_range(number, &visitor)));
            }
            // JSON has one kind of number, so `2.0` and `2e0` are 2.
            if let (false, Some(whole)) = (is_integer, whole(number)) {
                if let Ok(unsigned) = whole.parse() {
                    return self.placed(visitor.visit_u64(unsigned));
                }
                if let Ok(signed) = whole.parse() {
                    return self.placed(visitor.visit_i64(signed));
                }
                return Err(self.place(Failure::out_of_range(number, &visitor)));
            }
        }
        self.deserialize_any(visitor)
    }

    fn visit_long_integer<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if self.kind() == Kind::Number {
            let number = self.tree().raw(self.index);
            if let Ok(signed) = number.parse() {
                return self.placed(visitor.visit_i128(signed));
            }
            if let Ok(unsigned) = number.parse() {
                return self.placed(visitor.visit_u128(unsigned));
            }
            if !number.contains(['.', 'e', 'E']) {
                return Err(self.place(Failure::out_of_range(number, &visitor)));
            }
        }
        self.deserialize_any(visitor)
    }
}

/// The digits of a number with a fraction or an exponent, if it is an integer. A float would round:
/// `9007199254740993.0` is not `9007199254740992`.
fn whole(number: &str) -> Option<String> {
    /// No integer type has this many digits.
    const MOST_DIGITS: usize = 40;
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent),
        None => (number, "0"),
    };
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let after = after.trim_end_matches('0');
    let digits = format!("{before}{after}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    // An exponent that does not parse is beyond any integer, in one direction or the other.
    let exponent: i64 = match exponent.parse() {
        Ok(exponent) => exponent,
        Err(_) if exponent.starts_with('-') => return None,
        Err(_) => i64::from(u32::MAX),
    };
    let places = exponent.saturating_sub(i64::try_from(after.len()).ok()?);
    if places < 0 {
        let cut = usize::try_from(places.unsigned_abs()).ok()?;
        let (kept, dropped) = digits.split_at_checked(digits.len().checked_sub(cut)?)?;
        let is_whole = !kept.is_empty() && dropped.bytes().all(|digit| digit == b'0');
        return is_whole.then(|| format!("{sign}{kept}"));
    }
    let zeros = usize::try_from(places).map_or(MOST_DIGITS, |places| places.min(MOST_DIGITS));
    Some(format!("{sign}{digits}{}", "0".repeat(zeros)))
}

fn lone_surrogate() -> Failure {
    let message = "half of a surrogate pair, such as \\ud83d alone, is not valid Unicode";
    Failure::new(Code::LONE_SURROGATE, message)
}

macro_rules! integers {
    ($($deserialize:ident $visit:ident)*) => {$(
        fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
            self.$visit(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for At<'de, '_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let result = match self.kind() {
            Kind::Null => visitor.visit_unit(),
            Kind::Bool => visitor.visit_bool(self.tree().raw(self.index) == "true"),
            Kind::Number => self.visit_number(visitor),
            Kind::String => self.visit_string(visitor),
            Kind::Array => self.visit_elements(visitor),
            Kind::Object => self.visit_members(visitor),
        };
        self.placed(result)
    }

    integers! {
        deserialize_i8 visit_integer deserialize_i16 visit_integer deserialize_i32 visit_integer
        deserialize_i64 visit_integer deserialize_u8 visit_integer deserialize_u16 visit_integer
        deserialize_u32 visit_integer deserialize_u64 visit_integer
        deserialize_i128 visit_long_integer deserialize_u128 visit_long_integer
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if self.kind() != Kind::Number {
            return self.deserialize_any(visitor);
        }
        // Parsing as `f64` first would round twice and turn large numbers into infinity.
        let number = self.tree().raw(self.index);
        let result = match number.parse() {
            Ok(float) if f32::is_finite(float) => visitor.visit_f32(float),
            _ => Err(Failure::out_of_range(number, &visitor)),
        };
        self.placed(result)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if self.kind() != Kind::Number {
            return self.deserialize_any(visitor);
        }
        let number = self.tree().raw(self.index);
        let result = match number.parse() {
            Ok(float) if f64::is_finite(float) => visitor.visit_f64(float),
            _ => Err(Failure::out_of_range(number, &visitor)),
        };
        self.placed(result)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if self.kind() == Kind::Null {
            self.placed(visitor.visit_none())
        } else {
            self.placed(visitor.visit_some(self))
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        if name == NUMBER_AS_TEXT && self.kind() == Kind::Number {
            return self.placed(visitor.visit_borrowed_str(self.tree().raw(self.index)));
        }
        self.placed(visitor.visit_newtype_struct(self))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.visit_positions(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.visit_positions(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        // The visitor of a struct would take an array as its fields in order.
        if self.kind() == Kind::Array {
            return self.wrong_type(&visitor);
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        match self.kind() {
            Kind::String => {
                let span = self.tree().span(self.index);
                if span.marks.has(Marks::LONE) {
                    return Err(self.place(lone_surrogate()));
                }
                let name: Cow<'de, str> = self.tree().string(self.index);
                let variant: de::value::CowStrDeserializer<'_, Failure> = name.into_deserializer();
                self.placed(visitor.visit_enum(variant))
            }
            Kind::Object => {
                let mut members = self.tree().effective(self.index);
                let (Some(member), None) = (members.next(), members.next()) else {
                    return self.wrong_type(&"an object with one member, named like a variant");
                };
                if self.view.is_hidden(member) {
                    return Err(self.place(Failure::following()));
                }
                let variant = Variant {
                    member: self.view.at(member),
                };
                self.placed(visitor.visit_enum(variant))
            }
            _ => self.wrong_type(&"a string or an object"),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.placed(visitor.visit_unit())
    }

    forward_to_deserialize_any! {
        bool char str string bytes byte_buf unit unit_struct seq map identifier
    }
}

struct Elements<'de, 'v> {
    view: View<'de, 'v>,
    children: Children<'de>,
}

impl<'de> SeqAccess<'de> for Elements<'de, '_> {
    type Error = Failure;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Failure> {
        let Some(element) = self.view.next(&mut self.children) else {
            return Ok(None);
        };
        let element = self.view.at(element);
        element.placed(seed.deserialize(element)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.children.clone().count())
    }
}

struct Members<'de, 'v> {
    view: View<'de, 'v>,
    children: Children<'de>,
    /// The member whose name was returned last.
    value: Option<Index>,
}

impl<'de> MapAccess<'de> for Members<'de, '_> {
    type Error = Failure;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Failure> {
        self.value = self.view.next(&mut self.children);
        let Some(member) = self.value else {
            return Ok(None);
        };
        let member = self.view.at(member);
        member.placed(seed.deserialize(Name { member })).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Failure> {
        let Some(member) = self.value.take() else {
            return Err(de::Error::custom("a value was asked for before its name"));
        };
        let member = self.view.at(member);
        member.placed(seed.deserialize(member))
    }
}

/// The name of a member as a deserializer: a string, which can also be read as a number, a boolean or a unit variant.
struct Name<'de, 'v> {
    member: At<'de, 'v>,
}

impl<'de> Name<'de, '_> {
    fn text(&self) -> Cow<'de, str> {
        self.member.tree().name(self.member.index)
    }

    fn is_lone(&self) -> bool {
        let marks = self.member.tree().span(self.member.index).marks;
        marks.has(Marks::NAME_LONE)
    }
}

/// Reads a name as a number or a boolean; if it cannot be parsed, it is visited as a string.
macro_rules! parsed_name {
    ($($deserialize:ident $visit:ident)*) => {$(
        fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
            match self.text().parse() {
                Ok(parsed) => visitor.$visit(parsed),
                Err(_) => self.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Name<'de, '_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if self.is_lone() {
            return Err(lone_surrogate());
        }
        self.deserialize_identifier(visitor)
    }

    parsed_name! {
        deserialize_bool visit_bool
        deserialize_i8 visit_i8 deserialize_i16 visit_i16 deserialize_i32 visit_i32
        deserialize_i64 visit_i64 deserialize_i128 visit_i128
        deserialize_u8 visit_u8 deserialize_u16 visit_u16 deserialize_u32 visit_u32
        deserialize_u64 visit_u64 deserialize_u128 visit_u128
        deserialize_f32 visit_f32 deserialize_f64 visit_f64
    }

    /// A name that is no valid Unicode matches no field of a struct, so it is an unknown member there.
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.text() {
            Cow::Borrowed(name) => visitor.visit_borrowed_str(name),
            Cow::Owned(name) => visitor.visit_string(name),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        if self.is_lone() {
            return Err(lone_surrogate());
        }
        let name: de::value::CowStrDeserializer<'_, Failure> = self.text().into_deserializer();
        visitor.visit_enum(name)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
    }
}

/// An object with one member that represents an enum: the name is the variant, the value is its content.
struct Variant<'de, 'v> {
    member: At<'de, 'v>,
}

impl<'de> EnumAccess<'de> for Variant<'de, '_> {
    type Error = Failure;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Failure> {
        let name = Name {
            member: self.member,
        };
        if name.is_lone() {
            return Err(self.member.place(lone_surrogate()));
        }
        // An unknown variant is an error of the whole enum, so its place is not the member.
        let variant = seed.deserialize(name)?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de, '_> {
    type Error = Failure;

    fn unit_variant(self) -> Result<(), Failure> {
        self.member
            .placed(de::Deserialize::deserialize(self.member))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Failure> {
        self.member.placed(seed.deserialize(self.member))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        if self.member.kind() != Kind::Array {
            return self.member.wrong_type(&visitor);
        }
        self.member.visit_positions(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        if self.member.kind() != Kind::Object {
            return self.member.wrong_type(&visitor);
        }
        self.member.deserialize_any(visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn a_whole_number_is_one_in_every_spelling() {
        for (number, digits) in [
            ("2.0", "2"),
            ("2e0", "2"),
            ("-1.50e1", "-15"),
            ("1200e-2", "12"),
            ("0.12e2", "12"),
            ("0.0012e4", "12"),
            ("-0.0", "0"),
            ("0e999999999999999999999", "0"),
            ("1E+2", "100"),
            // More digits than a float has.
            ("9007199254740993.0", "9007199254740993"),
            ("1.8446744073709551615e19", "18446744073709551615"),
        ] {
            assert_eq!(whole(number).as_deref(), Some(digits), "{number}");
        }
        for number in ["0.5", "1e-1", "12e-3", "1.25e1", "1e-99999999999999999999"] {
            assert_eq!(whole(number), None, "{number}");
        }
        // An exponent this large must not produce as many digits.
        assert!(whole("1e99999999999999999999").is_some_and(|digits| digits.len() < 50));
    }
}

//! Finds what the JSON text of a value does not show: which objects are maps, and numbers that are not finite.

use std::fmt;

use serde::Serialize;
use serde::ser::{self, Serializer};

/// serde_json passes numbers of arbitrary precision and raw values as structs with this name prefix.
const PRIVATE: &str = "$serde_json::private::";

/// For each object that the value serializes to, in the order of the text: whether it is a map and not a struct.
///
/// # Errors
///
/// [`Flaw::NotFinite`] for NaN and infinities, which serde_json would write as `null`.
pub(super) fn maps<T: Serialize + ?Sized>(value: &T) -> Result<Vec<bool>, Flaw> {
    let mut objects = Vec::new();
    value.serialize(Maps {
        objects: &mut objects,
    })?;
    Ok(objects)
}

/// Why a value cannot be inspected.
#[derive(Debug)]
pub(super) enum Flaw {
    /// A number that JSON cannot represent.
    NotFinite,
    /// The value cannot be serialized.
    Other,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Flaw::NotFinite => "NaN and infinities have no JSON text",
            Flaw::Other => "the value cannot be serialized",
        })
    }
}

impl std::error::Error for Flaw {}

impl ser::Error for Flaw {
    fn custom<T: fmt::Display>(_message: T) -> Flaw {
        Flaw::Other
    }
}

struct Maps<'s> {
    objects: &'s mut Vec<bool>,
}

impl Maps<'_> {
    fn again(&mut self) -> Maps<'_> {
        Maps {
            objects: self.objects,
        }
    }

    fn found(&mut self, is_map: bool) {
        self.objects.push(is_map);
    }
}

macro_rules! plain {
    ($($serialize:ident($kind:ty))*) => {$(
        fn $serialize(self, _value: $kind) -> Result<(), Flaw> {
            Ok(())
        }
    )*};
}

impl<'s> Serializer for Maps<'s> {
    type Ok = ();
    type Error = Flaw;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    plain! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_i128(i128) serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64)
        serialize_u128(u128) serialize_char(char) serialize_str(&str) serialize_bytes(&[u8])
        serialize_unit_struct(&'static str)
    }

    fn serialize_f32(self, value: f32) -> Result<(), Flaw> {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<(), Flaw> {
        if value.is_finite() {
            Ok(())
        } else {
            Err(Flaw::NotFinite)
        }
    }

    fn serialize_none(self) -> Result<(), Flaw> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Flaw> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Flaw> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
    ) -> Result<(), Flaw> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Flaw> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        value: &T,
    ) -> Result<(), Flaw> {
        self.found(false);
        value.serialize(self)
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Self, Flaw> {
        Ok(self)
    }

    fn serialize_tuple(self, _length: usize) -> Result<Self, Flaw> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<Self, Flaw> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        mut self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Self, Flaw> {
        self.found(false);
        Ok(self)
    }

    fn serialize_map(mut self, _length: Option<usize>) -> Result<Self, Flaw> {
        self.found(true);
        Ok(self)
    }

    fn serialize_struct(mut self, name: &'static str, _length: usize) -> Result<Self, Flaw> {
        if !name.starts_with(PRIVATE) {
            self.found(false);
        }
        Ok(self)
    }

    fn serialize_struct_variant(
        mut self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Self, Flaw> {
        // One object has the name of the variant, the other is its content.
        self.found(false);
        self.found(false);
        Ok(self)
    }
}

macro_rules! elements {
    ($($compound:ident $element:ident)*) => {$(
        impl ser::$compound for Maps<'_> {
            type Ok = ();
            type Error = Flaw;

            fn $element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Flaw> {
                value.serialize(self.again())
            }

            fn end(self) -> Result<(), Flaw> {
                Ok(())
            }
        }
    )*};
}

elements! {
    SerializeSeq serialize_element
    SerializeTuple serialize_element
    SerializeTupleStruct serialize_field
    SerializeTupleVariant serialize_field
}

macro_rules! fields {
    ($($compound:ident)*) => {$(
        impl ser::$compound for Maps<'_> {
            type Ok = ();
            type Error = Flaw;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                _name: &'static str,
                value: &T,
            ) -> Result<(), Flaw> {
                value.serialize(self.again())
            }

            fn end(self) -> Result<(), Flaw> {
                Ok(())
            }
        }
    )*};
}

fields! { SerializeStruct SerializeStructVariant }

impl ser::SerializeMap for Maps<'_> {
    type Ok = ();
    type Error = Flaw;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, _key: &T) -> Result<(), Flaw> {
        // A name is not a value.
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Flaw> {
        value.serialize(self.again())
    }

    fn end(self) -> Result<(), Flaw> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Serialize)]
    enum Shape {
        Dot,
        Circle(f32),
        Box { side: BTreeMap<u8, Option<f64>> },
    }

    #[test]
    fn maps_are_told_from_structs_in_the_order_of_the_text() {
        let side = BTreeMap::from([(1, Some(1.0)), (2, None)]);
        let shapes = (Shape::Dot, Shape::Circle(1.0), Shape::Box { side });
        assert_eq!(maps(&shapes).unwrap(), [false, false, false, true]);
        let any = serde_json::json!({"a": [{}, 1.5], "b": {}});
        assert_eq!(maps(&any).unwrap(), [true; 3]);
    }

    #[test]
    fn numbers_without_text_are_found() {
        assert!(matches!(maps(&[1.0, f64::NAN]), Err(Flaw::NotFinite)));
        assert!(matches!(
            maps(&Shape::Circle(f32::INFINITY)),
            Err(Flaw::NotFinite)
        ));
    }
}

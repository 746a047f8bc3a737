//! `Arbitrary` for the types of the library.

/// Declares what `any` gives of each type, with the words for its documentation.
macro_rules! arbitrary {
    ($( $(#[$doc:meta])* $name:ty => $strategy:expr );+ $(;)?) => {
        $(
            $(#[$doc])*
            impl proptest::arbitrary::Arbitrary for $name {
                type Parameters = ();
                type Strategy = proptest::strategy::BoxedStrategy<Self>;

                fn arbitrary_with((): ()) -> Self::Strategy {
                    proptest::strategy::Strategy::boxed($strategy)
                }
            }
        )+
    };
}

pub(super) use arbitrary;

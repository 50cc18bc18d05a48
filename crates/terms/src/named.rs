//! Names of enums without fields.

/// Gives an enum `ALL`, its variants in this order, and `name`, by which configurations, signatures and files call each.
///
/// ```
/// #[derive(Debug, PartialEq)]
/// pub enum Side { Left, Right }
/// terms::named!(Side { Left => "left", Right => "right" });
/// assert_eq!(Side::ALL.map(|side| side.name()), ["left", "right"]);
/// ```
#[macro_export]
macro_rules! named {
    ($type:ident { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            /// Every one.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name in configurations, signatures and files.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }
    };
}

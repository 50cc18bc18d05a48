//! exp(ψ(x)), the weight that variational Bayes gives a count.

/// The exponential of the digamma function, for x > 0, to about twelve digits.
///
/// ψ(x) = ψ(x + 7) - Σ 1/(x + k) over k < 7. The sum is the logarithmic derivative of the product
/// of the x + k, which takes one division instead of seven; and of ψ(x + 7), whose series begins
/// with a logarithm, the exponential begins without one.
pub(crate) fn exp_digamma(x: f64) -> f64 {
    let (mut product, mut derivative) = (1.0, 0.0);
    for k in 0..7 {
        let factor = x + f64::from(k);
        derivative = derivative * factor + product;
        product *= factor;
    }
    let y = x + 6.5;
    let inverse = 1.0 / (y * y);
    let series = inverse
        * (1.0 / 24.0
            - inverse * (7.0 / 960.0 - inverse * (31.0 / 8064.0 - inverse * (127.0 / 30720.0))));
    y * (series - derivative / product).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let euler = 0.577_215_664_901_532_9_f64;
        for (x, digamma) in [
            (1.0, -euler),
            (0.5, -euler - 4.0_f64.ln()),
            (2.0, 1.0 - euler),
            (0.01, -100.560_885_457_868_7),
            (10.0, 2.251_752_589_066_721),
            (1e6, 13.815_510_057_964_19),
        ] {
            let ours = exp_digamma(x) / f64::exp(digamma);
            assert!((ours - 1.0).abs() < 1e-10, "{x}: {ours}");
        }
    }
}

//! `isogloss bench`: how fast this machine trains, encodes and searches.

mod encode;
mod mlm;
mod rate;
mod search;

const EXAMPLES: &str = "Examples:
  isogloss bench mlm --dim 256 --heads 4 --layers 4 --vocab 8000
  isogloss bench encode --dim 256 --heads 4 --layers 4 --vocab 8000
  isogloss bench search --rows 20000 --columns 20000 --dim 300 --neighbors 10";

subcommands! {
    /// What can be measured.
    #[command(after_help = EXAMPLES)]
    pub enum Bench {
        /// Train a masked language model on random tokens and print the speed.
        ///
        /// 15 % of the tokens are masked and dropout is 0.1, as in the papers. The first half of the
        /// steps warms up; the median of the second half counts. Operations are counted as a framework
        /// would execute them, whether or not they are saved here.
        ///
        /// Example:
        ///   isogloss bench mlm --batch 8 --length 128 --dim 256 --heads 4 --layers 4 --vocab 8000
        #[command(verbatim_doc_comment)]
        Mlm(mlm::BenchMlm),

        /// Encode random tokens and print the speed.
        ///
        /// Every layer runs for every token, nothing is masked or dropped, and the mean of each
        /// sequence's last layer is read back, as `isogloss encode` does it. The first half of the steps
        /// warms up; the median of the second half counts.
        ///
        /// Example:
        ///   isogloss bench encode --batch 16 --length 128 --dim 256 --heads 4 --layers 4 --vocab 8000
        #[command(verbatim_doc_comment)]
        Encode(encode::BenchEncode),

        /// Search the nearest neighbours among random vectors, both ways, and print the time.
        ///
        /// What CSLS needs before it can score anything. Vectors are copied to the device within the
        /// time, and the neighbours are copied back. The first repeat warms up; the median of the others
        /// counts.
        ///
        /// Example:
        ///   isogloss bench search --rows 20000 --columns 20000 --dim 300 --neighbors 10
        #[command(verbatim_doc_comment)]
        Search(search::BenchSearch),
    }
}

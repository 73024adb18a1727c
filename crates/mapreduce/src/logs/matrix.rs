//! Who sent how much to whom, inferred from what each place wrote, read, and read from itself.
//!
//! With two places the margins and the diagonal determine the matrix. Beyond that proportional fitting (iterative
//! scaling of rows and columns) gives the most even matrix with these margins, and the result says that it is inferred.

/// Bytes from each place (row) to each place (column).
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Rows of bytes.
    pub bytes: Vec<Vec<f64>>,
    /// Whether the log determines it (at most two places and a known diagonal).
    pub exact: bool,
    /// What remains between the matrix and what the log says was written, relative to the total.
    pub residual: f64,
}

/// Beyond this many places a matrix is of no use to a reader.
const MAX_PLACES: usize = 1000;

impl Matrix {
    pub(crate) fn infer(wrote: &[u64], read: &[u64], local: Option<&Vec<u64>>) -> Option<Self> {
        let n = wrote.len();
        let (total_wrote, total_read) = (wrote.iter().sum::<u64>() as f64, read.iter().sum::<u64>() as f64);
        if n == 0 || n > MAX_PLACES || total_wrote == 0.0 || total_read == 0.0 {
            return None;
        }
        // What was read counts; what was written and read twice, or never, only sets the proportions.
        let rows: Vec<f64> = wrote.iter().map(|&w| w as f64 / total_wrote * total_read).collect();
        let (row, column): (Vec<f64>, Vec<f64>) = match local {
            Some(local) => (0..n).map(|i| ((rows[i] - local[i] as f64).max(0.0), (read[i] - local[i].min(read[i])) as f64)).unzip(),
            None => (rows, read.iter().map(|&r| r as f64).collect()),
        };
        let mut bytes = vec![vec![0.0; n]; n];
        for i in 0..n {
            for j in 0..n {
                bytes[i][j] = if local.is_some() && i == j { 0.0 } else { row[i] * column[j] };
            }
        }
        let mut residual = 0.0;
        for _ in 0..1000 {
            for i in 0..n {
                scale(bytes[i].iter_mut(), row[i]);
            }
            for (j, &target) in column.iter().enumerate() {
                scale(bytes.iter_mut().map(|r| &mut r[j]), target);
            }
            let off: f64 = (0..n).map(|i| (bytes[i].iter().sum::<f64>() - row[i]).abs()).sum();
            residual = off / total_read;
            if residual < 1e-9 {
                break;
            }
        }
        if let Some(local) = local {
            (0..n).for_each(|i| bytes[i][i] = local[i] as f64);
        }
        Some(Self { bytes, exact: n <= 2 && local.is_some(), residual })
    }
}

fn scale<'a>(values: impl Iterator<Item = &'a mut f64>, target: f64) {
    let values: Vec<&mut f64> = values.collect();
    let sum: f64 = values.iter().map(|v| **v).sum();
    if sum > 0.0 {
        values.into_iter().for_each(|v| *v *= target / sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_places_are_exact() {
        // 0 wrote 100 and kept 30; 1 wrote 60 and kept 20.
        let matrix = Matrix::infer(&[100, 60], &[70, 90], Some(&vec![30, 20])).unwrap();
        assert!(matrix.exact);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
        close(matrix.bytes[0][1], 70.0);
        close(matrix.bytes[1][0], 40.0);
        close(matrix.bytes[0][0], 30.0);
    }

    #[test]
    fn margins_hold() {
        let (wrote, read, local) = ([50u64, 30, 20], [40u64, 30, 30], vec![10u64, 5, 5]);
        let matrix = Matrix::infer(&wrote, &read, Some(&local)).unwrap();
        assert!(!matrix.exact && matrix.residual < 1e-6);
        for i in 0..3 {
            assert!((matrix.bytes[i].iter().sum::<f64>() - wrote[i] as f64).abs() < 1e-3);
            assert!((matrix.bytes.iter().map(|r| r[i]).sum::<f64>() - read[i] as f64).abs() < 1e-3);
        }
        assert_eq!(Matrix::infer(&[0], &[0], None), None);
    }
}

// The functions that generated code calls and JavaScript lacks. Python takes them from mpmath, and a
// test holds both together: tests/book/test_code_generation.py.

const SHIFT = 16; // from here on the asymptotic series of the harmonic numbers is exact to a double
const SERIES = [1 / 2, -1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132]; // of y^-1, y^-2, y^-4, y^-6 ...

/** H(y) - ln y - γ, for y of at least SHIFT. */
function tail(y) {
  const square = y * y;
  let [total, power] = [SERIES[0] / y, 1];
  for (const coefficient of SERIES.slice(1)) total += coefficient / (power *= square);
  return total;
}

/**
 * The harmonic number 1 + 1/2 + ... + 1/n; between whole n its smooth continuation. n ≥ 0.
 * The first terms of H(n) = Σ n/(i(n+i)), and the rest as a difference in which γ cancels.
 */
function harmonic(n) {
  let total = Math.log1p(n / SHIFT) + (tail(n + SHIFT) - tail(SHIFT));
  for (let i = SHIFT; i >= 1; i--) total += n / (i * (n + i));
  return total;
}

/** term(low) + ... + term(high), in whole steps; nothing if high < low. Small terms aren't lost beside large ones. */
function sum(low, high, term) {
  let [total, lost] = [0, 0];
  for (let i = Math.ceil(low); i <= high; i++) {
    const next = term(i);
    const grown = total + next;
    lost += Math.abs(total) >= Math.abs(next) ? total - grown + next : next - grown + total;
    total = grown;
  }
  return total + lost;
}

/** Between measured points, xs rising, y goes as a power of x: a straight line on two logarithmic axes. NaN beyond them. */
function interpolated(x, xs, ys) {
  const last = xs.length - 1;
  if (!(x >= xs[0] && x <= xs[last])) return NaN;
  let i = 0;
  while (i < last && x >= xs[i + 1]) i++;
  return i === last ? ys[last] : ys[i] * (x / xs[i]) ** (Math.log(ys[i + 1] / ys[i]) / Math.log(xs[i + 1] / xs[i]));
}

/** The last number of the row that starts with these keys; NaN if there is none. */
function lookedUp(keys, rows) {
  const row = rows.find((one) => keys.every((key, i) => one[i] === key));
  return row ? row[keys.length] : NaN;
}

export default { harmonic, interpolated, lookedUp, sum };

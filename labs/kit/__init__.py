"""What a lab's notebook carries along: the banner, the checks, and the programs behind them."""

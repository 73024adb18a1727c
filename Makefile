# The one command of the project. `make demo` and `make test` set up everything that they need.
.PHONY: demo test check bench crosscheck docs claims lock setup clean
BIN := .venv/bin

setup:
	@scripts/setup

demo: setup ## Simulate the seeds' TeraSort and a real Spark log under six policies; write report/index.html
	@$(BIN)/joulepath simulate experiments/cluster/terasort_80.toml --no-report
	@$(BIN)/joulepath simulate experiments/cluster/nds_q72.toml --no-report
	@$(BIN)/joulepath report records/terasort_80 records/nds_q72 --out report/index.html

test: setup ## All tests: Rust, Python, command line, documentation, a page in a browser
	@scripts/test

check: setup ## Formatting and lints
	@cargo fmt --all --check
	@cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	@$(BIN)/ruff check python tests scripts bench
	@$(BIN)/ruff format --check python tests scripts bench

bench: setup ## Speed against ns-2 and ns-3 in the same minutes; appends to bench/history
	@$(BIN)/python bench/run.py

crosscheck: setup ## Goodput and queue lengths of two flows against ns-3 (about two minutes)
	@$(BIN)/python bench/crosscheck.py

docs: setup ## Regenerate the generated pages
	@$(BIN)/python scripts/docs.py

claims: setup ## Run every experiment of the seeds (about an hour of CPU time) and write docs/claims.md
	@for plan in experiments/cluster/*.toml; do rm -rf records/$$(basename $$plan .toml); $(BIN)/joulepath simulate $$plan || exit 1; done
	@$(BIN)/python scripts/claims.py

lock: setup ## Renew the locked versions
	@cargo update
	@$(BIN)/python -m pip freeze --exclude joulepath | grep -v '^-e' > requirements.lock.new
	@(head -1 requirements.lock; cat requirements.lock.new) > requirements.lock.next
	@mv requirements.lock.next requirements.lock; rm requirements.lock.new

clean:
	rm -rf target .venv records report

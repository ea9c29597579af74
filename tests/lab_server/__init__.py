"""A server of OpenAI's protocol for tests: its own process on the loopback address, with known truth and known faults.

    python -m lab_server   a made-up chat model that has read some documents (`player`); a real causal language model
                           (`causal`) runs in the test's own process (`running.running_model`)

It prints its port, answers until its standard input is closed, and keeps a ledger of everything that was asked and of
what a provider would have charged for.
"""

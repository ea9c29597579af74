"""When PRISM can clear: texts of the report; its tables and figures are data (conf/report/prism_power.yaml)."""

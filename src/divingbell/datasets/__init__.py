"""The dataset server: files of a folder as tables, which code gets as DataFrames."""

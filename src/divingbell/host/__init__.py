"""This machine, as every backend needs it: folders, files, control groups, uids, profiles."""

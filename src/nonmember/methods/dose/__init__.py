"""The dose meter: how often was a set read?"""

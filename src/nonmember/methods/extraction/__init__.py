"""Name cloze and prefix completion: can the model complete what it should not know?"""

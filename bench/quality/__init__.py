"""How well the compiler chooses, measured on labelled data that was written without looking at it.

Every figure is given for two halves: on the even ids the compiler was worked on, on the odd ones
it was only measured.
"""

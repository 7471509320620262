"""From data to a model: samples, codecs, training sets, fits; the base of all estimators."""

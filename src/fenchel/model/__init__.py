"""From data to a model: samples, codecs, training sets, fits."""

package api

func setDefaults(o object) {}

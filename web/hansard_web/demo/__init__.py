"""`hansard demo`: small real agents on a scripted model, traced by the stock OpenTelemetry SDK."""

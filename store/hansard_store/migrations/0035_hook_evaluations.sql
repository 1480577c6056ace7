-- How many calls hooks looked at, and how many they warned of, within a time: read from this index alone.
CREATE INDEX log_record_hook ON log_record (time_ns, event_name)
  WHERE event_name IN ('hansard.hook.evaluated', 'hansard.hook.warned');

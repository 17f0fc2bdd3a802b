"""Values and the loop: what everything else is written in. numpy and the codec library only."""

ffmpeg -hide_banner -nostats -loglevel error -f lavfi -i testsrc2=size=640x360:rate=25:duration=3 -f lavfi -i sine=frequency=440:duration=3 -c:v mpeg4 -threads 2 -flags +bitexact -fflags +bitexact -c:a ac3 -y it.mkv &&
    ffmpeg -hide_banner -nostats -loglevel error -i it.mkv -f framemd5 - | tail -n +5 | cksum
